"""The engines that run checked statements. `protocol.Engine` is their interface."""

// Completion in Ace.

/**
 * @param {any} ace
 * @param {any} editor Enter takes a word only after it was chosen, by Tab, an arrow or Ctrl+Space
 */
export function completeByChoice(ace, editor) {
  const util = ace.require("ace/autocomplete/util");
  // Captured, because Ace's own listener opens the list.
  editor.commands.on(
    "afterExec",
    (/** @type {any} */ { command }) => {
      const { completer } = editor;
      if (command.name !== "insertstring") return;
      // Otherwise the list would look for the words before a space, too.
      if (!util.getCompletionPrefix(editor)) completer.detach();
      if (!completer.activated) completer.autoSelect = false;
    },
    true,
  );
}

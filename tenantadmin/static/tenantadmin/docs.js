// A sign-in may lead here: its tokens must not stay in the address and the history.
if (/[?#&](access|refresh)_token=/.test(location.search + location.hash)) {
  history.replaceState(null, "", location.pathname);
}

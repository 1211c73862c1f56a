// The Ace editor under a strict Content-Security-Policy: its styles are files, and it starts no
// worker.

import { completeByChoice } from "./completion.js";
import { loadScript, loadStyle, staticUrl } from "./config.js";
import { h } from "./dom.js";

const FOLDER = "django_ace/ace";
const [LIGHT, DARK] = ["github_light_default", "github_dark"];

/**
 * @param
 *   {{mode: "json" | "sql", text: string, label: string, low?: boolean, readOnly?: boolean,
 *   words?: () => Word[],
 *   change?: () => void, run?: () => void, signal: AbortSignal}} options
 * @returns {Promise<Editor>}
 */
export async function createEditor({
  mode,
  text,
  label,
  low,
  readOnly,
  words,
  change,
  run,
  signal,
}) {
  for (const name of ["ace", `theme/${LIGHT}`, `theme/${DARK}`])
    loadStyle(`${FOLDER}/css/${name}.css`);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (dark.matches ? DARK : LIGHT);
  await Promise.all(
    ["ace", `mode-${mode}`, `theme-${theme()}`, ...(words ? ["ext-language_tools"] : [])].map(
      (name) => loadScript(`${FOLDER}/${name}.js`),
    ),
  );
  const { ace } = /** @type {any} */ (globalThis);
  ace.config.set("useStrictCSP", true);
  ace.config.set("basePath", staticUrl(FOLDER));

  const element = h("div", { class: low ? "editor low" : "editor" });
  const editor = ace.edit(element, {
    useWorker: false,
    value: text,
    showPrintMargin: false,
    tabSize: 2,
    useSoftTabs: true,
    readOnly,
    fontSize: 13,
    wrap: true,
    highlightActiveLine: !readOnly,
    enableKeyboardAccessibility: true,
    scrollPastEnd: 0.2,
    fontFamily: "var(--mono)",
  });
  const { session } = editor;
  session.setMode(`ace/mode/${mode}`);
  const dress = () => editor.setTheme(`ace/theme/${theme()}`);
  dress();
  dark.addEventListener("change", dress, { signal });
  editor.textInput.getElement().setAttribute("aria-label", label);
  if (change) session.on("change", change);
  if (run)
    editor.commands.addCommand({
      name: "run",
      bindKey: { win: "Ctrl-Enter", mac: "Command-Enter" },
      exec: run,
    });
  if (words) {
    const completers = [
      {
        // Names of tables contain dots.
        identifierRegexps: mode === "json" ? [/[\w.$*:-]/] : undefined,
        getCompletions: (/** @type {any[]} */ ...given) => given[4](null, words()),
      },
    ];
    editor.setOptions({ enableBasicAutocompletion: completers, enableLiveAutocompletion: true });
    completeByChoice(ace, editor);
  }
  const resize = new ResizeObserver(() => editor.resize());
  resize.observe(element);
  signal.addEventListener("abort", () => {
    resize.disconnect();
    editor.destroy();
  });

  /** @type {number[]} */
  let markers = [];
  let mark = 0;
  const { Range } = ace.require("ace/range");
  return {
    element,
    value: () => editor.getValue(),
    set: (value) => {
      editor.setValue(value, -1);
    },
    insert: (value) => {
      editor.insert(value);
      editor.focus();
    },
    goTo(line, last) {
      if (last) {
        session.removeMarker(mark);
        mark = session.addMarker(new Range(line - 1, 0, last - 1, 1), "lint-changed", "fullLine");
        session.once("change", () => session.removeMarker(mark));
      }
      // It may be new in the page, without a size yet.
      editor.resize(true);
      editor.gotoLine(line);
      editor.scrollToLine(line - 1, true, true);
      editor.focus();
    },
    annotate(notes) {
      markers.forEach((marker) => session.removeMarker(marker));
      markers = notes.map((note) =>
        session.addMarker(
          new Range(note.line - 1, 0, note.line - 1, 1),
          `lint-${note.severity}`,
          "fullLine",
        ),
      );
      session.setAnnotations(
        notes.map((note) => ({ row: note.line - 1, text: note.message, type: note.severity })),
      );
    },
  };
}

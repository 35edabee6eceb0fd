// marked: a click on a line's number puts the line, or with Shift the lines up to it, into the address.
import type { AppStore } from "../state/app";
import { markedBy, type Marked } from "../state/marked";

export function mark(store: AppStore, say: (text: string) => void, pane: Marked["pane"], line: number, extend: boolean): void {
  const marked = markedBy(store.state.marked, pane, line, extend);
  store.set({ marked });
  if (!marked) return;
  const which = marked.last > marked.first ? `Lines ${marked.first} to ${marked.last} are` : `Line ${marked.first} is`;
  say(`${which} in the address: Ctrl+S copies the link`);
}

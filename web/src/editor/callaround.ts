// callaround: the call whose arguments a position is among, and which of them.
import { syntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";
import { fullName, type SyntaxNode } from "./names";

export interface CallAround {
  /** As fullName gives it. */
  name: string;
  /** Where the callee begins, and where the parenthesis is. */
  start: number;
  from: number;
  /** The number of the argument, from 0. */
  index: number;
  /** The name with which the argument is given; null: by its position. */
  keyword: string | null;
  /** The names with which other arguments are given. */
  named: ReadonlySet<string>;
}

/** The arguments before the position, and the rest, split at the commas. */
function args(state: EditorState, list: SyntaxNode, pos: number): { index: number; keyword: string | null; named: Set<string> } {
  let index = 0;
  const keywords = new Map<number, string>();
  let at = 0;
  for (let child = list.firstChild; child; child = child.nextSibling) {
    if (child.name === ",") {
      at++;
      if (child.to <= pos) index = at;
    } else if (child.name === "AssignOp" && child.prevSibling?.name === "VariableName") {
      keywords.set(at, state.doc.sliceString(child.prevSibling.from, child.prevSibling.to));
    }
  }
  const keyword = keywords.get(index) ?? null;
  keywords.delete(index);
  return { index, keyword, named: new Set(keywords.values()) };
}

/** The innermost one that has a full name; null if there is none. */
export function callAround(state: EditorState, pos: number): CallAround | null {
  let node: SyntaxNode | null = syntaxTree(state).resolveInner(pos, -1);
  for (; node; node = node.parent) {
    const isInside = node.name === "ArgList" && node.from < pos && (pos < node.to || node.lastChild?.name !== ")");
    const callee = isInside ? node.parent?.firstChild : null;
    if (!callee) continue;
    const name = fullName(state, callee);
    return name === null ? null : { name, start: callee.from, from: node.from, ...args(state, node, pos) };
  }
  return null;
}

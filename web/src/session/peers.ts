// peers: where the others are in a text: carets, selections, and the line that the leader points at.  Names are text only, at
// the end of their lines.
import { type Extension, type Range, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";

export interface Peer {
  person: number;
  name: string;
  /** Whether they are connected. */
  here: boolean;
  from: number;
  to: number;
  /** The caret; null: the whole line is meant. */
  head: number | null;
}

export interface Peers {
  peers: readonly Peer[];
  /** The line that is pointed at, by its first position, by whom, and what the margin says. */
  pointed: { at: number; says: string; person: number } | null;
}

export const COLOURS = 8;
export const colourOf = (person: number) => `person-${(person - 1) % COLOURS}`;

class Caret extends WidgetType {
  constructor(private readonly person: number) {
    super();
  }
  override eq(other: Caret): boolean {
    return other.person === this.person;
  }
  toDOM(): HTMLElement {
    const node = document.createElement("span");
    node.className = `peer-caret ${colourOf(this.person)}`;
    node.setAttribute("aria-hidden", "true");
    return node;
  }
}

/** Names behind one line; of more their number. */
const NAMES_MAX = 4;

class Tag extends WidgetType {
  constructor(
    private readonly names: readonly { person: number; name: string; here: boolean }[],
  ) {
    super();
  }
  override eq(other: Tag): boolean {
    return JSON.stringify(other.names) === JSON.stringify(this.names);
  }
  toDOM(): HTMLElement {
    const box = document.createElement("span");
    box.className = "peer-tags";
    for (const { person, name, here } of this.names.slice(0, NAMES_MAX)) {
      const tag = document.createElement("span");
      tag.className = `peer-tag ${colourOf(person)}${here ? "" : " away"}`;
      tag.textContent = name;
      box.append(tag);
    }
    const rest = this.names.slice(NAMES_MAX);
    if (rest.length > 0) {
      const more = document.createElement("span");
      more.className = "peer-tag more";
      more.textContent = `+${rest.length}`;
      box.append(more);
    }
    return box;
  }
  override ignoreEvent(): boolean {
    return true;
  }
}

const setPeers = StateEffect.define<Peers>();

function draw({ peers, pointed }: Peers, view: { doc: EditorView["state"]["doc"] }): DecorationSet {
  const { doc } = view;
  const clamp = (n: number) => Math.max(0, Math.min(n, doc.length));
  const ranges: Range<Decoration>[] = [];
  const tags = new Map<number, { person: number; name: string; here: boolean }[]>();
  const tag = (at: number, one: { person: number; name: string; here: boolean }) => {
    const line = doc.lineAt(clamp(at));
    tags.set(line.from, [...(tags.get(line.from) ?? []), one]);
  };
  if (pointed) {
    const line = doc.lineAt(clamp(pointed.at));
    ranges.push(Decoration.line({ class: `peer-pointed lead-${(pointed.person - 1) % COLOURS}` }).range(line.from));
    tag(line.from, { person: pointed.person, name: pointed.says, here: true });
  }
  for (const p of peers) {
    const [from, to] = [clamp(Math.min(p.from, p.to)), clamp(Math.max(p.from, p.to))];
    if (to > from) ranges.push(Decoration.mark({ class: `peer-selection ${colourOf(p.person)}` }).range(from, to));
    if (p.head === null) ranges.push(Decoration.line({ class: `peer-line ${colourOf(p.person)}` }).range(doc.lineAt(from).from));
    else ranges.push(Decoration.widget({ widget: new Caret(p.person), side: 10 }).range(clamp(p.head)));
    tag(p.head ?? from, { person: p.person, name: p.name, here: p.here });
  }
  for (const [from, names] of tags) ranges.push(Decoration.widget({ widget: new Tag(names), side: 100 }).range(doc.lineAt(from).to));
  return Decoration.set(ranges, true);
}

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(now, tr) {
    for (const effect of tr.effects) if (effect.is(setPeers)) return draw(effect.value, tr.newDoc ? { doc: tr.newDoc } : tr.state);
    return tr.docChanged ? now.map(tr.changes) : now;
  },
  provide: (f) => EditorView.decorations.from(f),
});

export function peersIn(): Extension {
  return field;
}

export function showPeers(view: EditorView, peers: Peers): void {
  if (view.state.field(field, false) === undefined) view.dispatch({ effects: StateEffect.appendConfig.of(field) });
  view.dispatch({ effects: setPeers.of(peers) });
}

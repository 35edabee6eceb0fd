// sourcemap: which lines of each stage belong to which ranges of the source, in both directions.
//
// Ranges are interned: equal ranges have the same number in all stages of a kernel, so that "the same expression" is an
// integer comparison.  The tables of a stage are built when it is first shown.
import type { Place as TablePlace, Source, SourceRange, SourceTable, Stage } from "../api/types";
import { boxesOf, countRounds, type PlaceRounds } from "./rounds";

/** One place and its callers, innermost first, as range numbers. */
export type Place = readonly number[];

/** The files, places and sources that a result has reported so far; it grows while the result arrives. */
export class Sources {
  private readonly files: string[] = [];
  private readonly places: TablePlace[] = [];
  private readonly lists: Source[] = [];

  add(table: SourceTable): void {
    for (const file of table.files) this.files.push(file);
    for (const place of table.places) this.places.push(place);
    for (const source of table.sources) this.lists.push(source);
  }

  /** Takes in a table whose numbers begin with 0 again; returns what its sources' numbers are raised by. */
  append(table: SourceTable): number {
    const [files, places, lists] = [this.files.length, this.places.length, this.lists.length];
    this.add({
      files: table.files,
      places: table.places.map(([file, line, col, endLine, endCol, fn, caller, loops]) => {
        const up = caller < 0 ? caller : caller + places;
        return loops ? [file + files, line, col, endLine, endCol, fn, up, loops.map((n) => n + places)] : [file + files, line, col, endLine, endCol, fn, up];
      }),
      sources: table.sources.map((source) => ({ ...source, places: source.places.map((n) => n + places) })),
    });
    return lists;
  }

  source(number: number): Source | undefined {
    return this.lists[number];
  }

  /** The range of a place, the number of its caller's, and those of the loops around it in its function; null for a number
   * that stands for no place. */
  place(number: number): { range: SourceRange; caller: number; loops: readonly number[] } | null {
    const place = this.places[number];
    const file = place && this.files[place[0]];
    if (!place || file === undefined) return null;
    const [, line, col, end_line, end_col, fn, caller, loops] = place;
    return { range: { file, line, col, end_line, end_col, ...(fn ? { fn } : {}) }, caller: caller < number ? caller : -1, loops: loops ?? [] };
  }
}

export interface StageLinks {
  /** By line - 1; null for a line without an operation. */
  places: (readonly Place[] | null)[];
  /** By line - 1: how many further places there are at least. */
  more: Int32Array;
  /** Lines (1-based) on which an operation is printed, in order. */
  opLines: Map<number, number[]>;
  /** The operation of each line, by line - 1; -1 for none. */
  lineOp: Int32Array;
  /** Operations that a range takes part in: as the innermost place, or (calls) as a caller. */
  rangeOps: Map<number, number[]>;
  callOps: Map<number, number[]>;
}

const NO_PLACES: readonly Place[] = [];

function before(a: SourceRange, b: SourceRange): number {
  return a.line - b.line || a.col - b.col || b.end_line - a.end_line || b.end_col - a.end_col;
}

export class SourceMap {
  readonly ranges: SourceRange[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly links = new Map<Stage, StageLinks>();
  private readonly inverses = new Map<Stage, Map<number, number[]>>();
  private bandOfLine = new Map<string, number>();
  private coloured = 0;
  /** The places of each source of the result that the kernel refers to. */
  private readonly placesOfSource: (readonly Place[])[] = [];
  private readonly rounds = new Map<readonly Place[], (PlaceRounds | null)[]>();
  /** The headers of loops, numbered apart from the ranges: they have no operations. */
  readonly loops: SourceRange[] = [];
  private readonly loopNumbers = new Map<string, number>();
  /** By loop: how many rounds operations were recorded in, at least. */
  readonly roundsOfLoop = new Map<number, number>();
  private readonly loopsAround = new Map<number, Set<number>>();

  /** files: names of the user's files, in the order of their colours. */
  constructor(
    private readonly files: readonly string[],
    private readonly sources: Sources,
  ) {}

  /** Numbers the stage's ranges at once: the source's colours must not depend on which stages were shown. */
  addStage(stage: Stage): void {
    for (const info of stage.lines) if (info.src !== undefined) this.placesOf(info.src);
  }

  private intern(range: SourceRange): number {
    return numberIn(this.ranges, this.numbers, range);
  }

  /** True if the range is in one of the user's files, which the editor can show. */
  isShown(n: number): boolean {
    const range = this.ranges[n];
    return range !== undefined && range.line > 0 && this.files.includes(range.file);
  }

  /** The name of the file that is compiled. */
  get mainFile(): string | null {
    return this.files[0] ?? null;
  }

  /** True if a range needs its file's name to be understood: it is not in the main file. */
  isElsewhere(range: SourceRange): boolean {
    return range.file !== this.files[0];
  }

  /** The places of a source of the result. */
  placesOf(source: number): readonly Place[] {
    const known = this.placesOfSource[source];
    if (known) return known;
    const places: Place[] = [];
    const rounds: (PlaceRounds | null)[] = [];
    const from = this.sources.source(source);
    from?.places.forEach((number, i) => {
      const chain: number[] = [];
      const loops: number[][] = [];
      for (let at = this.sources.place(number); at; at = this.sources.place(at.caller)) {
        chain.push(this.intern(at.range));
        loops.push(at.loops.flatMap((l) => this.loopOfPlace(l) ?? []));
      }
      if (chain.length === 0) return;
      places.push(chain);
      rounds.push(from.rounds ? this.roundsIn(chain, loops, from, i) : null);
    });
    this.placesOfSource[source] = places;
    if (from?.rounds) this.rounds.set(places, rounds);
    return places;
  }

  private loopOfPlace(number: number): number | null {
    const place = this.sources.place(number);
    return place && numberIn(this.loops, this.loopNumbers, place.range);
  }

  /** loops: by depth, those of each frame. */
  private roundsIn(chain: Place, loops: readonly (readonly number[])[], source: Source, i: number): PlaceRounds | null {
    const boxes = boxesOf(source, i);
    if (boxes.length === 0) return null;
    const around = loops.map((_, depth) => loops.slice(depth).flat().length);
    const found = { loops: [...loops].reverse().flat(), around, boxes, isCut: (source.more_rounds ?? 0) > 0 };
    countRounds(found, this.roundsOfLoop);
    chain.forEach((range, depth) => {
      const known = this.loopsAround.get(range) ?? new Set();
      for (const loop of found.loops.slice(0, around[depth])) known.add(loop);
      this.loopsAround.set(range, known);
    });
    return found;
  }

  /** The rounds of each place of a list from placesOf; null: no loop is around any of them. */
  roundsOf(places: readonly Place[]): readonly (PlaceRounds | null)[] | null {
    return this.rounds.get(places) ?? null;
  }

  /** The loops around the range and its callers, the outermost first. */
  loopsOf(range: number): readonly number[] {
    return [...(this.loopsAround.get(range) ?? [])];
  }

  /** How many places the source has, at least, besides those that it lists. */
  moreOf(source: number): number {
    return this.sources.source(source)?.more ?? 0;
  }

  linksOf(stage: Stage): StageLinks {
    const known = this.links.get(stage);
    if (known) return known;
    const n = stage.lines.length;
    const links: StageLinks = {
      places: new Array<readonly Place[] | null>(n).fill(null),
      more: new Int32Array(n),
      opLines: new Map(),
      lineOp: new Int32Array(n).fill(-1),
      rangeOps: new Map(),
      callOps: new Map(),
    };
    stage.lines.forEach((info, i) => {
      if (info.op === undefined && info.src === undefined) return;
      const places = info.src === undefined ? NO_PLACES : this.placesOf(info.src);
      links.places[i] = places;
      links.more[i] = info.src === undefined ? 0 : this.moreOf(info.src);
      if (info.op === undefined) return;
      links.lineOp[i] = info.op;
      push(links.opLines, info.op, i + 1);
      for (const place of places)
        place.forEach((range, depth) => push(depth === 0 ? links.rangeOps : links.callOps, range, info.op as number));
    });
    this.links.set(stage, links);
    return links;
  }

  /** For each operation of the previous stage, the operations of `stage` that came from it. */
  descendants(stage: Stage): Map<number, number[]> {
    let inverse = this.inverses.get(stage);
    if (!inverse) {
      inverse = new Map();
      for (const [op, from] of Object.entries(stage.from ?? {})) for (const f of from) push(inverse, f, Number(op));
      this.inverses.set(stage, inverse);
    }
    return inverse;
  }

  /** The colour of a range's first line: counted in source order, file after file, over the lines that have operations. */
  private band(range: SourceRange): number | null {
    if (this.coloured !== this.ranges.length) {
      const rank = (r: SourceRange) => this.files.indexOf(r.file);
      const own = this.ranges.filter((_, n) => this.isShown(n)).sort((a, b) => rank(a) - rank(b) || a.line - b.line);
      this.bandOfLine = new Map();
      for (const r of own) {
        const key = `${r.file}:${r.line}`;
        if (!this.bandOfLine.has(key)) this.bandOfLine.set(key, this.bandOfLine.size);
      }
      this.coloured = this.ranges.length;
    }
    return this.bandOfLine.get(`${range.file}:${range.line}`) ?? null;
  }

  bandOfPlaces(places: readonly Place[]): number | null {
    for (const place of places) {
      for (const n of place) {
        const range = this.isShown(n) ? this.ranges[n] : undefined;
        if (range) return this.band(range);
      }
    }
    return null;
  }

  /** Lines of a file with a colour: the first line of each range, and its other lines unless they have their own. */
  bands(file: string): Map<number, number> {
    const bands = new Map<number, number>();
    const order = this.ranges.filter((range, n) => this.isShown(n) && range.file === file).sort(before);
    for (const range of order) {
      const own = this.band(range);
      if (own !== null) bands.set(range.line, own);
    }
    for (const range of order) {
      const own = bands.get(range.line);
      // a range that ends in column 1 does not reach into its last line
      const last = range.end_col <= 1 ? range.end_line - 1 : range.end_line;
      for (let line = range.line + 1; own !== undefined && line <= last; line++)
        if (!bands.has(line)) bands.set(line, own);
    }
    return bands;
  }

  find(range: SourceRange): number | null {
    return this.numbers.get(keyOf(range)) ?? null;
  }

  findLoop(range: SourceRange): number | null {
    return this.loopNumbers.get(keyOf(range)) ?? null;
  }
}

function keyOf(range: SourceRange): string {
  return `${range.line}:${range.col}:${range.end_line}:${range.end_col}:${range.file}`;
}

/** The number of a range in a list without repetitions, to which it is added. */
function numberIn(list: SourceRange[], numbers: Map<string, number>, range: SourceRange): number {
  const key = keyOf(range);
  let n = numbers.get(key);
  if (n === undefined) {
    n = list.length;
    list.push(range);
    numbers.set(key, n);
  }
  return n;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (!list) map.set(key, [value]);
  else if (list.at(-1) !== value) list.push(value); // equal values are adjacent
}

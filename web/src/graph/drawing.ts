// drawing: what a picture of a stage consists of, as the worker sends it to the page.
//
// Lengths are pixels at a scale of 1.  Lines are those of the stage's text, from 1.

/** An operation, a group of them, or a loop. */
export interface Box {
  /** The same for the same operation or group in every drawing of a stage. */
  id: string;
  kind: "op" | "parameter" | "result" | "constant" | "group" | "loop";
  x: number;
  y: number;
  width: number;
  height: number;
  title: string;
  /** The name, the shape, and what else distinguishes the operation. */
  detail: string;
  /** Which kind of work it is: decides the colour. */
  tone: string;
  /** The line that a click selects; 0: none. */
  line: number;
  /** All lines that it stands for, `line` among them. */
  lines: readonly number[];
  /** Of what can be opened and closed: whether it is open; otherwise null. */
  open: boolean | null;
  /** The boxes that it stands in. */
  depth: number;
  /** Of a call of a function: the number of the range of the source; otherwise -1. */
  range: number;
}

export interface Edge {
  from: string;
  to: string;
  points: readonly (readonly [number, number])[];
  /** What flows along it. */
  text: string;
}

export interface Drawing {
  width: number;
  height: number;
  /** A box comes after the one that it stands in. */
  boxes: readonly Box[];
  edges: readonly Edge[];
  table: Table;
  /** What the picture shows, in a few words. */
  summary: string;
}

/** The same facts as text. */
export interface Table {
  heads: readonly string[];
  /** How many further rows there are. */
  more: number;
  rows: readonly { line: number; depth: number; cells: readonly string[] }[];
}

/** A call of a function of the kernel: which expression calls it, and its name. */
export interface Call {
  range: number;
  name: string;
}

export interface Wanted {
  id: number;
  dialect: string;
  text: string;
  /** By line - 1: the calls that led to the operation, the outermost first. */
  calls: readonly (readonly Call[])[];
  /** What the user has opened or closed, by the id of the box. */
  opened: ReadonlyMap<string, boolean>;
  /** Constants are shown as operations of their own. */
  constants: boolean;
}

export interface Answer {
  id: number;
  drawing: Drawing | null;
  /** Why there is none. */
  fault: string;
}

/** More rows of a table say less than the text does. */
export const TABLE_MAX = 3000;

/** Characters of the font in which boxes are written. */
export const CHAR = 7.25;
export const LINE = 17;

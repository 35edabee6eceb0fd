// token: a coloured piece of one line.  Both languages can be read one line at a time, so a jump into the middle of a long
// text needs no lines before it.

export type TokenClass =
  | "compute"
  | "transfer"
  | "sync"
  | "alloc"
  | "control"
  | "otherop"
  | "keyword"
  | "symbol"
  | "value"
  | "type"
  | "number"
  | "string"
  | "comment"
  | "attr" // names and values of attributes, layouts: muted
  // of the compact form
  | "heading"
  | "fold"
  | `engine-${"T" | "V" | "S" | "G" | "Y" | "D"}`;

export interface Token {
  from: number;
  to: number;
  cls: TokenClass;
}

/** Characters; the rest of a longer line is not coloured, because constants can be megabytes long. */
export const TOKEN_LINE_MAX = 6000;

export type Tokenizer = (line: string) => Token[];

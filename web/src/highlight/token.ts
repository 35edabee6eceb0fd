// token: a coloured piece of one line.  Both languages can be read a line at a time, so that a jump into the middle
// of a long text costs nothing.

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
  | "attr"; // names and values of attributes, layouts: there, but quiet

export interface Token {
  from: number;
  to: number;
  cls: TokenClass;
}

/** Beyond this many characters a line stays plain: constants can be megabytes long. */
export const TOKEN_LINE_MAX = 6000;

export type Tokenizer = (line: string) => Token[];

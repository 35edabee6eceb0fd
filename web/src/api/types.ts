// types: what the server sends and accepts.
//
// They mirror compiler/driver/compile.h (frames) and job.h (requests).  Lines and columns are 1-based, columns count
// Unicode code points, the end of a range is exclusive.

/** A range of the user's source. */
export interface SourceRange {
  file: string;
  line: number;
  col: number;
  end_line: number;
  end_col: number;
  /** The function that contains the range, if known. */
  fn?: string;
  /** In a list of places: 0 innermost, 1 its caller, …; a new 0 starts the next place. */
  depth?: number;
}

/** What one line of a stage's text stands for. */
export interface LineInfo {
  op?: number;
  src?: SourceRange[];
}

/** What the pass that led to a stage decided. */
export interface Remark {
  pass: string;
  text: string;
  /** The operation of this stage at whose line it is read; absent if nothing is left of the one it is about. */
  op?: number;
  /** The operation of the stage before that it is about. */
  from?: number;
  src?: SourceRange[];
}

export interface StageCheck {
  status: "pass" | "fail" | "skipped";
  max_abs_err?: number;
  max_rel_err?: number;
  reason?: string;
}

export interface Stage {
  index: number;
  name: string;
  pass: string;
  phase: string;
  dialect: string;
  changed: boolean;
  /** It ends where the kernel was refused. */
  partial?: boolean;
  time_us: number;
  op_counts: Record<string, number>;
  text: string;
  lines: LineInfo[];
  /** For each operation, the operations of the stage before that it came from. */
  from?: Record<string, number[]>;
  remarks?: Remark[];
  check?: StageCheck;
}

export interface TensorInfo {
  name: string;
  shape: number[];
  dtype: string;
  alias_of?: string;
}

export interface Diagnostic {
  severity: "error" | "warning" | "note";
  code: string;
  message: string;
  hint?: string;
  stage?: string;
  kernel?: number;
  range?: SourceRange;
  calls?: SourceRange[];
}

export interface ArtifactInfo {
  name: string;
  media_type: string;
  size: number;
  sha256: string;
}

export type Frame =
  | { frame: "queued"; position: number }
  | { frame: "start"; version: number; key: string; language: string; target: string; pipeline: string }
  | { frame: "kernel"; kernel: number; name: string; inputs: TensorInfo[]; outputs: TensorInfo[] }
  | { frame: "stage"; kernel: number; stage: Stage }
  | { frame: "diagnostic"; diagnostic: Diagnostic }
  | { frame: "artifact"; artifact: ArtifactInfo; data?: string }
  | { frame: "end"; status: "ok" | "error"; time_us: number };

export interface InputSpec {
  name?: string;
  shape: number[];
  dtype: string;
}

export interface CompileRequest {
  source?: string;
  /** Instead of source: a serialized HloModuleProto. */
  source_base64?: string;
  filename?: string;
  language?: string;
  target?: string;
  kernel?: string;
  inputs?: InputSpec[];
  /** Keeps the result from whoever does not know it: random, one per browser. */
  scope?: string;
  options?: { stop_after?: string; check?: boolean; artifacts?: boolean };
}

/** What a NumPy function becomes, as GET /api/v1/ops describes it. */
export interface Operation {
  name: string;
  kind: string;
  /** Its names: "np.exp". */
  numpy: string[];
  /** Its name as a method of a tensor. */
  method?: string;
  example: string;
  hlo: string[];
  linalg: string[];
  nisa: string[];
}

/** One pass as GET /api/v1/pipeline describes it. */
export interface StageDescription {
  index: number;
  name: string;
  pass: string;
  phase: string;
  dialect: string;
  summary: string;
}

export interface Example {
  name: string;
  title: string;
  language: string;
  source: string;
}

/** A machine; the figures that the page does not show yet are left out. */
export interface Target {
  name: string;
  title: string;
  core: string;
}

/** [first column, column behind the last], in code points from 1. */
export type WordRange = [number, number];

/** A line that became another; no words on either side: only where its operands come from differs. */
export interface DiffPair {
  from: number;
  to: number;
  words_from: WordRange[];
  words_to: WordRange[];
}

export interface DiffHunk {
  from: { line: number; count: number };
  to: { line: number; count: number };
  pairs: DiffPair[];
}

/** explorer/diff/diff.h */
export interface StageDiff {
  lines_from: number;
  lines_to: number;
  changed: number;
  removed: number;
  added: number;
  hunks: DiffHunk[];
}

/** The whole result, as POST /api/v1/compile gives it and snippets keep it. */
export interface Result {
  key: string;
  status: "ok" | "error";
  language: string;
  target: string;
  time_us: number;
  kernels: { name: string; inputs: TensorInfo[]; outputs: TensorInfo[]; stages: Stage[] }[];
  diagnostics: Diagnostic[];
}

export type Visibility = "unlisted" | "public";

export interface Ancestor {
  visibility: Visibility;
  created_ms: number;
  id?: string;
  title?: string;
}

/** explorer/api/snippets.h */
export interface Snippet {
  id: string;
  visibility: Visibility;
  title?: string;
  created_ms: number;
  expires_ms: number | null;
  request: CompileRequest;
  view: unknown;
  pipeline: string;
  is_current: boolean;
  ancestry: Ancestor[];
  result: Result;
}

export interface SnippetRequest extends CompileRequest {
  title?: string;
  view: object;
  parent?: string;
  visibility: Visibility;
  expires_in?: number;
}

export interface SnippetMade {
  id: string;
  url: string;
  embed_url: string;
  edit_token: string;
  visibility: Visibility;
  created_ms: number;
  expires_ms: number | null;
}

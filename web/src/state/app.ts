// app: the shape of the page's state.
import type { Problem } from "../api/problem";
import type { CompilerVersion, Example, InputSpec, LessonAbout, PassDescription, PipelineChoice, SourceFile, Target } from "../api/types";
import type { ShownLesson } from "./lesson";
import type { Anchor, Hover } from "./selection";
import type { Marked } from "./marked";
import type { Thread } from "./notes";
import type { Outcome, Pipelines } from "./outcome";
import type { Pin } from "./pin";
import type { Edited } from "./resume";
import type { Run } from "./run";
import type { Shared } from "./shared";
import { Store } from "./store";

/** Reading stages, seeing them run on the simulated machine, or comparing A with B. */
export type Mode = "read" | "run" | "compare";

/** What the drawer below the stage's text shows of the selected line. */
export type Inspect = "values" | "tiles";

export interface AppState {
  // what is compiled
  /** The user has edited it since it was opened. */
  touched: boolean;
  /** The main file's text. */
  source: string;
  /** The main file's name; null: the language's own. */
  filename: string | null;
  /** The files that it may import. */
  files: readonly SourceFile[];
  language: string;
  target: string;
  /** Shapes given by the form; null leaves them to the source. */
  inputs: InputSpec[] | null;
  check: boolean;
  /** The version of the compiler, by its pipeline; TODAY: the server's own (compilers.ts). */
  version: string;
  /** The stages of NumPy, HLO and MLIR kernels: all, or those that the reference has. */
  pipeline: PipelineChoice;
  /** Run the kernel on the simulated machine. */
  simulate: boolean;
  /** Of a launch of an NKI kernel: the instance that nki-trace shows alone; null: all. */
  instance: number | null;
  /** The stage whose text the user changed; null: none. */
  edited: Edited | null;
  /** What the user changed in the pipeline (byhand.ts). */
  byHand: readonly string[];
  /** FileCheck's lines that texts of stages should have; "": none. */
  patterns: string;

  // the result
  outcome: Outcome | null;
  /** The outcome before it, kept until its parts are replaced. */
  previous: Outcome | null;
  compiling: boolean;
  /** The source has changes that are not compiled yet. */
  pending: boolean;
  problem: Problem | null;

  // its origin
  /** The stored link that the page was opened on. */
  shared: Shared | null;
  /** The snippet that this kernel is a fork of. */
  parent: string | null;

  /** The session that the page is in: its id. */
  session: string | null;

  /** The lesson beside the kernel. */
  lesson: ShownLesson | null;

  /** Result A of a comparison; B is what the page shows. */
  pinned: Pin | null;

  /** The last run on the simulated machine. */
  run: Run | null;

  // the view
  mode: Mode;
  /** The compared stage, by key; "source": the sources; null: the last that differs. */
  comparedKey: string | null;
  /** The file that the editor shows: its name; null: the main file. */
  tab: string | null;
  kernelName: string | null;
  /** Which stage, as "name" or "name:N"; null follows the last one. */
  stageKey: string | null;
  /** The stage beside the shown one, by key; null: none. */
  beside: string | null;
  /** The step inside the shown stage that the drawer of steps shows, from 0; null: it is closed. */
  step: number | null;
  /** The drawer that looks into the selected line; null: it is closed. */
  inspect: Inspect | null;
  /** The execution, from 1, that the drawer shows first; null: its own choice.  The drawer takes it. */
  execution: number | null;
  /** The shown stage is drawn, too. */
  picture: boolean;
  /** The stage that the shown one is compared with, by key; "": the previous one; null: none. */
  diffFrom: string | null;
  /** The diff in one column. */
  unified: boolean;
  anchor: Anchor | null;
  /** The partner that the user picked in the shown stage, instead of the best one. */
  partner: number | null;
  hover: Hover | null;
  /** The lines that the address points at. */
  marked: Marked | null;
  /** The notes on lines of the source and the stages. */
  notes: readonly Thread[];
  /** What the page shows is being recorded. */
  isRecording: boolean;
  /** What was recorded, packed; null: nothing. */
  recording: string | null;
  filter: string;
  hideUnchanged: boolean;
  wrap: boolean;
  /** In a narrow window: the shown pane. */
  pane: "source" | "stages" | "ir";
  showInputs: boolean;
  /** The panes' widths from a link, until the user moves one; null: the user's own. */
  splits: Record<string, number> | null;
  /** Increases whenever the views must scroll to the selection. */
  reveal: number;

  // lists from the server
  examples: Example[];
  lessons: LessonAbout[];
  targets: Target[];
  pipelines: Pipelines;
  /** The versions of the compiler that the server has. */
  versions: readonly CompilerVersion[];
  /** The passes that can be put into a pipeline. */
  passes: readonly PassDescription[];
}

export type AppStore = Store<AppState>;

export function newStore(): AppStore {
  return new Store<AppState>({
    touched: false,
    source: "",
    filename: null,
    files: [],
    language: "nkipy",
    target: "trn2",
    inputs: null,
    check: false,
    version: "",
    pipeline: "default",
    simulate: false,
    instance: null,
    edited: null,
    byHand: [],
    patterns: "",
    outcome: null,
    previous: null,
    compiling: false,
    pending: false,
    problem: null,
    shared: null,
    parent: null,
    session: null,
    lesson: null,
    pinned: null,
    run: null,
    mode: "read",
    comparedKey: null,
    tab: null,
    kernelName: null,
    stageKey: null,
    beside: null,
    step: null,
    inspect: null,
    execution: null,
    picture: false,
    diffFrom: null,
    unified: false,
    anchor: null,
    partner: null,
    hover: null,
    marked: null,
    notes: [],
    isRecording: false,
    recording: null,
    filter: "",
    hideUnchanged: false,
    wrap: false,
    pane: "source",
    showInputs: false,
    splits: null,
    reveal: 0,
    examples: [],
    lessons: [],
    targets: [],
    pipelines: { hlo: [], reference: [], nki: [] },
    passes: [],
    versions: [],
  });
}

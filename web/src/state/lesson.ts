// lesson: the lesson that the page shows, its address, and how far the user has come in each.
import type { Lesson, LessonStep } from "../api/types";
import { pack, unpack } from "./fragment";

export interface ShownLesson {
  lesson: Lesson;
  /** The server's name of it; null for one of a user's own. */
  name: string | null;
  /** The text of one of a user's own. */
  text: string | null;
  /** From 0. */
  step: number;
}

/** What a lesson's address says: the server's name, or the packed text. */
export interface LessonLink {
  name: string | null;
  packed: string | null;
  /** From 0; null: where the user left it. */
  step: number | null;
}

export function lessonInHash(hash: string): LessonLink | null {
  const params = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const [name, packed] = [params.get("lesson"), params.get("lesson-text")];
  if (name === null && packed === null) return null;
  const step = /^[1-9]\d{0,2}$/.test(params.get("step") ?? "") ? Number(params.get("step")) - 1 : null;
  return { name, packed, step };
}

export async function lessonHash({ name, text, step }: ShownLesson): Promise<string> {
  return `#${name === null ? `lesson-text=${await pack(text ?? "")}` : `lesson=${encodeURIComponent(name)}`}&step=${step + 1}`;
}

export async function textOfLink(packed: string): Promise<string> {
  return unpack(packed);
}

export interface Progress {
  /** The step that was open last. */
  step: number;
  /** The steps that are done. */
  done: number[];
}

const KEY = "nkx.lessons";

function all(): Record<string, Progress> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, Progress>) : {};
  } catch {
    return {}; // no storage, or damaged: every lesson is new
  }
}

/** By what a lesson's progress is kept. */
function keyOf({ name, lesson }: Pick<ShownLesson, "name" | "lesson">): string {
  return name ?? `own: ${lesson.title}`;
}

export function progressOf(shown: Pick<ShownLesson, "name" | "lesson">): Progress {
  return progressNamed(keyOf(shown));
}

export function progressNamed(key: string): Progress {
  const kept = all()[key];
  const done = Array.isArray(kept?.done) ? kept.done.filter((n) => Number.isInteger(n)) : [];
  return { step: Number.isInteger(kept?.step) ? (kept?.step ?? 0) : 0, done };
}

export function keepProgress(shown: ShownLesson, isDone: boolean): void {
  const { done } = progressOf(shown);
  const { step } = shown;
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...all(), [keyOf(shown)]: { step, done: isDone && !done.includes(step) ? [...done, step] : done } }));
  } catch {
    // no storage: the progress lasts until the page is closed
  }
}

/** Whether a step's result needs a check, and a simulated run. */
export function needsOf(step: LessonStep): { check: boolean; simulate: boolean } {
  const goals = step.task?.goals ?? [];
  return {
    check: step.view.check || goals.some((g) => g.kind === "equals" || g.kind === "differs"),
    simulate: goals.some((g) => g.kind === "figure" || g.kind === "share"),
  };
}

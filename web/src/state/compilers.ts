// compilers: the versions of the compiler that the server has, and the one that the kernel is compiled with.
import type { CompilerVersion } from "../api/types";

/** The server's own version, today's; any other is named by its pipeline. */
export const TODAY = "";

/** What users call a version. */
export function versionName(versions: readonly CompilerVersion[], version: string): string {
  if (version === TODAY) return "today's version";
  return `version ${versions.find((v) => v.pipeline === version)?.name ?? version}`;
}

/** The version for a stored result that this pipeline made; today's if that is not there any more. */
export function versionFor(versions: readonly CompilerVersion[], pipeline: string): string {
  return versions.some((v) => v.pipeline === pipeline && !v.is_current) ? pipeline : TODAY;
}

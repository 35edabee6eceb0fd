// data: what a self-contained file holds.  It is a part of what GET /api/v1/snippets/ID answers, so that the server can put
// that into the file as it is.
import type { CompileRequest, Result } from "../api/types";

export interface OfflineData {
  title?: string;
  request: Pick<CompileRequest, "source" | "filename" | "files">;
  /** As a page wrote it. */
  view?: { notes?: unknown } | null;
  result: Pick<Result, "target" | "status" | "kernels" | "files" | "places" | "sources" | "diagnostics">;
}

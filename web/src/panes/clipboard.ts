// clipboard: copies a text.

/** False on plain HTTP, or where it is not allowed. */
export async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** The whole address of a path of this server. */
export function absolute(path: string): string {
  return new URL(path, location.origin).href;
}

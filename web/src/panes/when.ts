// when: a time as a short text.

/** "3 March 2026, 14:05"; the year is left out when it is this one. */
export function when(ms: number): string {
  const at = new Date(ms);
  const year: Intl.DateTimeFormatOptions = at.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return at.toLocaleString("en-GB", { day: "numeric", month: "long", hour: "2-digit", minute: "2-digit", ...year });
}

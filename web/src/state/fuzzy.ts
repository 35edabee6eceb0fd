// fuzzy: which of a text's characters a query means, and how well they fit.

export interface Match {
  /** Higher is better. */
  score: number;
  /** The matched characters, in ascending order. */
  at: readonly number[];
}

const WORD_START = 8;
const FOLLOWS = 5;
const SKIPPED = 0.1;

/** The characters of the word in the text, in order: whole if they stand together, or else from left to right with word starts
 * first. */
function matchWord(text: string, word: string): Match | null {
  const isStart = (i: number) => i === 0 || !/[\p{L}\p{N}]/u.test(text[i - 1] ?? "");
  const whole: number[] = [];
  for (let i = text.indexOf(word); i >= 0; i = text.indexOf(word, i + 1)) whole.push(i);
  const from = whole.find(isStart) ?? whole[0];
  const at: number[] = [];
  if (from !== undefined) {
    for (let i = 0; i < word.length; i++) at.push(from + i);
  } else {
    for (const c of word) {
      const after = (at.at(-1) ?? -1) + 1;
      let i = text.indexOf(c, after);
      if (i < 0) return null;
      // a start of a word is what an abbreviation means, unless the character follows at once
      for (let j = i; i !== after && j >= 0; j = text.indexOf(c, j + 1))
        if (isStart(j)) {
          i = j;
          break;
        }
      at.push(i);
    }
  }
  const score = at.reduce((sum, i, n) => {
    const before = at[n - 1];
    return sum + (isStart(i) ? WORD_START : 0) + (before === i - 1 ? FOLLOWS : 0) - (before === undefined ? i : i - before - 1) * SKIPPED;
  }, 0);
  return { score, at };
}

/** Null unless every word of the query is in the text. */
export function fuzzyMatch(text: string, query: string): Match | null {
  const lower = text.toLowerCase();
  let score = 0;
  const at = new Set<number>();
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const match = matchWord(lower, word);
    if (!match) return null;
    score += match.score;
    for (const i of match.at) at.add(i);
  }
  return { score, at: [...at].sort((a, b) => a - b) };
}

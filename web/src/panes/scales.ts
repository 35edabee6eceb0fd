// scales: colours for numbers that people with any colour vision tell apart.
//
// Values of one sign: viridis, whose lightness rises evenly.  Values of both signs: blue and orange from a neutral zero, which
// is the theme's ground, so that large values stand out in light and in dark.

type Rgb = readonly [number, number, number];

const VIRIDIS: readonly Rgb[] = [
  [68, 1, 84],
  [72, 40, 120],
  [62, 74, 137],
  [49, 104, 142],
  [38, 130, 142],
  [31, 158, 137],
  [53, 183, 121],
  [110, 206, 88],
  [181, 222, 43],
  [253, 231, 37],
];
const LIGHT: readonly Rgb[] = [
  [5, 48, 97],
  [33, 102, 172],
  [124, 178, 218],
  [247, 247, 247],
  [244, 165, 100],
  [196, 92, 12],
  [115, 52, 0],
];
const DARK: readonly Rgb[] = [
  [190, 225, 255],
  [92, 170, 240],
  [36, 92, 150],
  [27, 34, 44],
  [138, 76, 20],
  [228, 140, 50],
  [255, 214, 150],
];

export interface Scale {
  from: number;
  to: number;
  colour(v: number): Rgb;
}

function between(stops: readonly Rgb[], share: number): Rgb {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  const [a, b] = [stops[i] as Rgb, stops[i + 1] as Rgb];
  const mix = (k: 0 | 1 | 2) => Math.round(a[k] + (b[k] - a[k]) * (at - i));
  return [mix(0), mix(1), mix(2)];
}

/** The scale of these values; null is left out. */
export function scaleOf(values: readonly (number | null)[], isDark: boolean): Scale {
  let from = Infinity;
  let to = -Infinity;
  for (const v of values) {
    if (v === null) continue;
    from = Math.min(from, v);
    to = Math.max(to, v);
  }
  if (from > to) from = to = 0;
  if (from < 0 && to > 0) {
    const most = Math.max(-from, to);
    return { from: -most, to: most, colour: (v) => between(isDark ? DARK : LIGHT, (v / most + 1) / 2) };
  }
  return { from, to, colour: (v) => between(VIRIDIS, to > from ? (v - from) / (to - from) : 0.5) };
}

// bands: one colour per source line, the same in the source and in every stage.

/** Colours in a palette; style/bands.css has the same number. */
export const BANDS = 8;

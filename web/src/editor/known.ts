// known: a function that can be called in a kernel, as completion and signatures show it.
export interface Known {
  /** As the signature writes them; absent if it is not known. */
  parameters?: readonly string[];
  isKnob: boolean;
  /** Whether calls give their arguments by name. */
  isByName?: boolean;
  /** What it does. */
  tip(): HTMLElement;
}

// store: one object with the state of the page, and functions that are called when it changes.
//
// Watchers run once per turn of the event loop, however many changes there were, so that many frames at once cost one
// rendering.

export class Store<S extends object> {
  private listeners: readonly { keys: readonly (keyof S)[]; run: () => void }[] = [];
  private readonly dirty = new Set<keyof S>();
  private scheduled = false;

  constructor(private readonly values: S) {}

  get state(): Readonly<S> {
    return this.values;
  }

  set(patch: Partial<S>): void {
    for (const key of Object.keys(patch) as (keyof S)[]) {
      const value = patch[key] as S[keyof S];
      if (Object.is(this.values[key], value)) continue;
      this.values[key] = value;
      this.dirty.add(key);
    }
    if (this.dirty.size > 0 && !this.scheduled) {
      this.scheduled = true;
      queueMicrotask(() => this.flush());
    }
  }

  /** Calls run once now, and after any of the keys changed. */
  watch(keys: readonly (keyof S)[], run: () => void): void {
    this.listeners = [...this.listeners, { keys, run }];
    run();
  }

  /** The same values for another window, until `end`.  What goes wrong there must not stop the page. */
  branch(): { store: Store<S>; end(): void } {
    const own = new Set<() => void>();
    const watch = (keys: readonly (keyof S)[], run: () => void) => {
      const guarded = () => {
        try {
          run();
        } catch (e) {
          console.error(e);
        }
      };
      own.add(guarded);
      this.watch(keys, guarded);
    };
    const store = Object.create(this, { watch: { value: watch }, set: { value: (patch: Partial<S>) => this.set(patch) } }) as Store<S>;
    return {
      store,
      end: () => {
        this.listeners = this.listeners.filter((l) => !own.has(l.run));
      },
    };
  }

  private flush(): void {
    // a watcher may change the state again: the watchers of those keys run in the next round
    for (let round = 0; this.dirty.size > 0; round++) {
      if (round > 20) throw new Error("the page's state does not settle");
      const changed = new Set(this.dirty);
      this.dirty.clear();
      for (const { keys, run } of this.listeners) if (keys.some((k) => changed.has(k))) run();
    }
    this.scheduled = false;
  }
}

// stylesheets: makes CodeMirror's styles work under `style-src 'self'`.
//
// style-mod writes a <style> element, which our Content-Security-Policy refuses.  Constructed sheets are allowed, so
// this replaces its mount function with one that uses them.  It must run before the first editor is created.
import { StyleModule } from "style-mod";

type Root = Document | ShadowRoot;
type Mount = (root: Root, modules: StyleModule | readonly StyleModule[]) => void;

const sheets = new WeakMap<StyleModule, CSSStyleSheet>();

function sheetOf(module: StyleModule): CSSStyleSheet {
  let sheet = sheets.get(module);
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(module.getRules());
    sheets.set(module, sheet);
  }
  return sheet;
}

export function adoptEditorStyles(): void {
  const mount: Mount = (root, modules) => {
    const wanted = (Array.isArray(modules) ? (modules as StyleModule[]) : [modules as StyleModule]).map(sheetOf);
    // later modules override earlier ones, in whatever order they were mounted
    const others = root.adoptedStyleSheets.filter((s) => !wanted.includes(s));
    root.adoptedStyleSheets = [...others, ...wanted];
  };
  (StyleModule as unknown as { mount: Mount }).mount = mount;
}

// stylesheets: lets CodeMirror's styles in under `style-src 'self'`.
//
// style-mod writes a <style> element, which our Content-Security-Policy refuses.  Constructed sheets are allowed, so
// its mount function is replaced by one that uses them; must run before the first editor is created.
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
    // later modules take precedence over earlier ones, whenever they were mounted
    const others = root.adoptedStyleSheets.filter((s) => !wanted.includes(s));
    root.adoptedStyleSheets = [...others, ...wanted];
  };
  (StyleModule as unknown as { mount: Mount }).mount = mount;
}

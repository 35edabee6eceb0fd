// late: the styles of what is loaded later than the page.  Constructed sheets are what the Content-Security-Policy allows.
export function adoptStyle(css: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
}

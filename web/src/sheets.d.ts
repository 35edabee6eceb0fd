// sheets: style sheets that are imported as text; see build.mjs.
declare module "*.css?sheet" {
  const text: string;
  export default text;
}

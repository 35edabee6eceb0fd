declare module "*.late.css" {
  const css: string;
  export default css;
}

// build: bundles the page into static files that the server can send as they are.
//
//   node build.mjs --outdir=DIR
//
// The names of scripts and styles contain a hash of their content, so that browsers may cache them forever; index.html
// names them and is never cached.  Each file gets .gz and .br siblings, because the server does not compress static files.
import { build, transform } from "esbuild";
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { check as checkTypes } from "./types.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const arg = process.argv.find((a) => a.startsWith("--outdir="));
const outdir = resolve(arg ? arg.slice("--outdir=".length) : join(here, "dist"));

const TARGETS = ["es2022", "chrome111", "firefox115", "safari16.4"];
const COMPRESSIBLE = new Set([".html", ".js", ".css", ".svg", ".txt"]);

// What is loaded later than the page: styles are text for a constructed sheet, and completion has a copy of its module.  In
// one copy, the brackets that the first view needs of the module would bring all of it into the first view.
const late = {
  name: "late",
  setup(b) {
    b.onLoad({ filter: /\.late\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true, target: TARGETS });
      return { contents: code, loader: "text" };
    });
    b.onResolve({ filter: /^@codemirror\/autocomplete$/ }, async ({ path, importer, kind, resolveDir, pluginData }) => {
      if (pluginData === late || !importer.endsWith("/editor/complete.ts")) return undefined;
      const found = await b.resolve(path, { importer, kind, resolveDir, pluginData: late });
      return { path: found.path, sideEffects: false, suffix: "?late" };
    });
  },
};

// Whatever a late module shares with the first view would become a chunk of its own, one for each set of late modules that
// share it, and many small chunks compress badly.  So each late module imports all of the first view, which is there already.
const whole = {
  name: "whole",
  setup(b) {
    b.onResolve({ filter: /^\./ }, async ({ path, importer, kind, resolveDir, pluginData }) => {
      if (pluginData === whole || kind !== "dynamic-import") return undefined;
      const found = await b.resolve(path, { importer, kind, resolveDir, pluginData: whole });
      return { path: found.path, pluginData: whole };
    });
    b.onLoad({ filter: /\.ts$/ }, async ({ path, pluginData }) => {
      if (pluginData !== whole) return undefined;
      return { contents: `${await readFile(path, "utf8")}\nimport ${JSON.stringify(join(here, "src/main.ts"))};\n`, loader: "ts" };
    });
  },
};

async function bundleOf(entryPoints, define = {}) {
  const result = await build({
    absWorkingDir: here,
    entryPoints,
    bundle: true,
    define,
    minify: true,
    format: "esm",
    target: TARGETS,
    plugins: [late, whole],
    outdir: "out",
    splitting: true,
    chunkNames: "[name]-[hash]",
    entryNames: "[name]-[hash]",
    write: false,
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
  });
  return result;
}

async function bundle() {
  // boot runs before anything is drawn, and the worker beside the page: each is a script of its own without imports
  const alone = [await bundleOf({ boot: "src/boot.ts" }), await bundleOf({ layout: "src/graph/worker.ts" })];
  const worker = Object.entries(alone[1].metafile.outputs).find(([, meta]) => meta.entryPoint);
  const results = [await bundleOf({ main: "src/main.ts", style: "src/style/index.css" }, { NKX_LAYOUT_WORKER: JSON.stringify(`/${basename(worker[0])}`) }), ...alone];
  const names = {};
  for (const { metafile } of results)
    for (const [path, meta] of Object.entries(metafile.outputs)) if (meta.entryPoint) names[basename(meta.entryPoint)] = basename(path);
  const files = results.flatMap((r) => r.outputFiles.map((f) => [basename(f.path), f.contents]));
  return { files, names, preload: needed(results[0].metafile, names["main.ts"]) };
}

/** The scripts that the main one imports at once: the page names them, so that they are loaded side by side. */
function needed(metafile, main) {
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, meta]) => [basename(path), meta]));
  const found = new Set();
  const visit = (name) => {
    for (const { path, kind } of outputs.get(name)?.imports ?? []) {
      if (kind !== "import-statement" || found.has(basename(path))) continue;
      found.add(basename(path));
      visit(basename(path));
    }
  };
  visit(main);
  return [...found];
}

async function page(names, preload) {
  const template = await readFile(join(here, "src/index.html"), "utf8");
  return template
    .replaceAll("{{boot}}", names["boot.ts"])
    .replaceAll("{{main}}", names["main.ts"])
    .replaceAll("{{preload}}", preload.map((name) => `<link rel="modulepreload" href="/${name}">`).join("\n"))
    .replaceAll("{{style}}", names["index.css"]);
}

const sha256 = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

// The template of a self-contained file: its script and style are in it, and its policy allows these two only.
async function offline() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { script: "src/offline/main.ts", style: "src/offline/offline.css" },
    bundle: true,
    minify: true,
    format: "iife",
    target: TARGETS,
    outdir: "out",
    write: false,
    legalComments: "none",
    logLevel: "warning",
  });
  const text = (suffix) => result.outputFiles.find((f) => f.path.endsWith(suffix)).text.trim();
  const [script, style] = [text(".js"), text(".css")];
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("offline: the bundle would end its element");
  return (await readFile(join(here, "src/offline/offline.html"), "utf8"))
    .replace("{{script-hash}}", () => sha256(script))
    .replace("{{style-hash}}", () => sha256(style))
    .replace("{{style}}", () => style)
    .replace("{{script}}", () => script);
}

async function compress(dir) {
  for (const name of await readdir(dir)) {
    if (!COMPRESSIBLE.has(extname(name))) continue;
    const bytes = await readFile(join(dir, name));
    await writeFile(join(dir, name + ".gz"), gzipSync(bytes, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    await writeFile(join(dir, name + ".br"), brotliCompressSync(bytes, { params }));
  }
}

// The folder itself is not replaced, because a running server has it open.  Files are replaced one by one, index.html last,
// because it names the others.
async function replace(from) {
  await mkdir(outdir, { recursive: true });
  const names = (await readdir(from)).sort((a, b) => a.startsWith("index.html") - b.startsWith("index.html"));
  for (const name of names) await rename(join(from, name), join(outdir, name));
  for (const name of await readdir(outdir)) if (!names.includes(name)) await rm(join(outdir, name), { recursive: true });
  await rm(from, { recursive: true });
}

await checkTypes();
const { files, names, preload } = await bundle();
const made = outdir + ".new";
await rm(made, { recursive: true, force: true });
await mkdir(made, { recursive: true });
await cp(join(here, "public"), made, { recursive: true });
for (const [name, bytes] of files) await writeFile(join(made, name), bytes);
await writeFile(join(made, "index.html"), await page(names, preload));
await writeFile(join(made, "offline.html"), await offline());
await compress(made);
// a hash of all content, to compare builds
const all = createHash("sha256");
for (const [, bytes] of files) all.update(bytes);
await writeFile(join(made, "version.txt"), all.digest("hex").slice(0, 16) + "\n");
await replace(made);

// tiles: what the page computes of the tiles of each instruction, for test_tiles.py.
//
//   tiles.ts RESULT.json     prints [{line, op, rounds, isCounted, descriptor, tiles: [{name, elements, regions, wrong}]}]
//
// A region is wrong if it leaves the buffer, or does not have as many elements as the tile.
import { readFileSync } from "node:fs";
import { extentOf, regionOf, roundAt, tilesOf, type Tile, type Tiles } from "../../web/src/nisa/tiles";

const ROUNDS_MAX = 64;

function check(all: Tiles, t: Tile) {
  const { rows, columns } = extentOf(t);
  // a dimension that does not move the place reads the same elements again
  const elements = t.extents.reduce((n, x, k) => (t.index.some(({ by }) => by[k]) ? n * x : n), 1);
  const wrong: string[] = [];
  const regions = new Set<string>();
  for (let i = 0; i < Math.min(all.rounds, ROUNDS_MAX); i++) {
    const region = regionOf(t, roundAt(all.loops, i));
    if (!region) continue;
    regions.add(JSON.stringify(region));
    if (region.some((r) => r.row < 0 || r.column < 0 || r.row + r.rows > rows || r.column + r.columns > columns)) wrong.push(`round ${i} leaves the buffer: ${JSON.stringify(region.slice(0, 3))}`);
    if (region.reduce((n, r) => n + r.rows * r.columns, 0) !== elements) wrong.push(`round ${i} has ${JSON.stringify(region.slice(0, 3))}, not ${elements} elements`);
  }
  return { name: t.name, elements, regions: regions.size, wrong };
}

const result = JSON.parse(readFileSync(process.argv[2] as string, "utf8"));
const text = result.kernels[0].stages.at(-1).text.split("\n") as string[];
const found = text.flatMap((_, i) => {
  const all = tilesOf(text, i + 1);
  return all ? [{ line: i + 1, op: all.instruction.op, rounds: all.rounds, isCounted: all.isCounted, descriptor: all.descriptor, tiles: all.tiles.map((t) => check(all, t)) }] : [];
});
console.log(JSON.stringify(found));

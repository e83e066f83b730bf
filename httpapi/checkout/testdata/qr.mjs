// Decodes QR codes: reads [{path, size}], an SVG path of modules and their number, and answers the texts.
import { createRequire } from "node:module";
const require = createRequire(process.env.PAYMENTS_NODE_MODULES + "/");
const decode = require("jsqr").default ?? require("jsqr");

let text = "";
for await (const chunk of process.stdin) text += chunk;
const scale = 4;
console.log(JSON.stringify(JSON.parse(text).map(({ path, size }) => {
  const width = size * scale;
  const pixels = new Uint8ClampedArray(width * width * 4).fill(255);
  for (const [, x, y, run] of path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\d+z/g)) {
    for (let py = y * scale; py < (Number(y) + 1) * scale; py++) {
      for (let px = x * scale; px < (Number(x) + Number(run)) * scale; px++) pixels.fill(0, (py * width + px) * 4, (py * width + px) * 4 + 3);
    }
  }
  const found = decode(pixels, width, width);
  return found ? found.data : null;
})));

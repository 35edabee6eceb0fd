// ndjson: the lines of a stream of bytes, each as soon as it is complete.

export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  // Pieces of the unfinished line; joined once, so that a long line takes linear time.
  let pieces: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const chunk = done ? decoder.decode() : decoder.decode(value, { stream: true });
      let start = 0;
      for (let nl = chunk.indexOf("\n"); nl >= 0; nl = chunk.indexOf("\n", start)) {
        pieces.push(chunk.slice(start, nl));
        const line = pieces.join("");
        pieces = [];
        start = nl + 1;
        if (line.trim() !== "") yield line;
      }
      if (start < chunk.length) pieces.push(chunk.slice(start));
      if (done) break;
    }
    const rest = pieces.join("");
    if (rest.trim() !== "") yield rest;
  } finally {
    reader.cancel().catch(() => {});
  }
}

// All layers of an image after each other, image after image (a CPU: the task is one of `slots` pieces of work memory), or one
// part of one layer of one image (a GPU: `items` parts of each image).
const bool whole = items == 0;
const Layer* layers = (const Layer*)table.data;
for (int image = whole ? task : task / items; image < count; image += whole ? slots : count) {
  float* memory = work.data + (size_t)(whole ? task : image) * work_stride;
  const unsigned char* pixels = images.data + (size_t)image * image_stride;
  for (int number = first_layer; number < last_layer; ++number) {
    const Layer& layer = layers[number];
    const float* from = memory + layer.from;
    float* into = memory + layer.into;
    const int last = whole ? layer.items() : task % items + 1;
    for (int item = whole ? 0 : task % items; item < last; ++item) {
      if (layer.kind == NORMALISE) {
        // Rows of 8-bit colours; what each of the 256 becomes is looked up.
        const unsigned char* row = pixels + (size_t)item * layer.width * 3;
        float* to = into + item * layer.into_row;
        for (int x = 0; x < layer.width; ++x)
          for (int c = 0; c < 3; ++c) to[3 * x + c] = colors.data[256 * c + row[3 * x + c]];
        continue;
      }
      // Of channels: lane, then vector or group of vectors.
      const int lane = item % (16 / LANES), part = item / (16 / LANES);
      if (layer.kind == CONVOLVE) {
        const int tiles = LANES == 1 ? layer.tiles() : 1, block = part / tiles, wide = 16 * layer.vectors;
        const float* w = weights.data + layer.weights + (size_t)block * layer.rows * layer.length * wide;
        const float* b = weights.data + layer.bias + block * wide;
        float* to = into + block * wide;
#if LANES == 1
        const int first = (part - block * tiles) * layer.pixels(), left = layer.count - first;
        const int some = left < layer.pixels() ? left : layer.pixels();
#define CONVOLVE_BY(NUMBER) Convolve##NUMBER::run(layer, from, to, w, b, first, some, lane)
#else
#define CONVOLVE_BY(NUMBER) Convolve##NUMBER::all(layer, from, to, w, b)
#endif
        if (layer.vectors == 7) CONVOLVE_BY(7);
        else if (layer.vectors == 5) CONVOLVE_BY(5);
        else if (layer.vectors == 4) CONVOLVE_BY(4);
        else if (layer.vectors == 3) CONVOLVE_BY(3);
        else if (layer.vectors == 2) CONVOLVE_BY(2);
        else CONVOLVE_BY(1);
        continue;
      }
      if (layer.kind == DEPTHWISE) {
        const int pixels = LANES == 1 ? layer.count : 1, vector = part / pixels, at = 16 * vector + lane;
        const float* w = weights.data + layer.weights + 16 * vector * layer.rows * layer.length + lane;
        const float* b = weights.data + layer.bias + at;
#if LANES == 1
        Filter::run(layer, from + at, into + at, w, b, part - vector * pixels, 1);
#else
        const bool wide = layer.columns >= PIXELS_FILTER;
        if (wide && layer.rows == 3 && layer.stride == 1) Filter3_1::all(layer, from + at, into + at, w, b);
        else if (wide && layer.rows == 3 && layer.stride == 2) Filter3_2::all(layer, from + at, into + at, w, b);
        else if (wide && layer.rows == 5 && layer.stride == 1) Filter5_1::all(layer, from + at, into + at, w, b);
        else if (wide && layer.rows == 5 && layer.stride == 2) Filter5_2::all(layer, from + at, into + at, w, b);
        else Filter::run(layer, from + at, into + at, w, b, 0, layer.count);
#endif
        continue;
      }
      const int vector = part % layer.blocks, at = 16 * vector + lane;
      if (layer.kind == ADD) {
        const int pixel = part / layer.blocks, y = pixel / layer.columns, x = pixel - y * layer.columns;
        float* to = into + y * layer.into_row + x * layer.into_pixel + at;
        N::store(to, N::load(to) + N::load(from + y * layer.from_row + x * layer.from_pixel + at));
        continue;
      }
      if (layer.kind == POOL) {
        // The largest of 3 x 3; what reaches over the edge counts the edge again.
        const int pixel = part / layer.blocks, y = pixel / layer.columns, x = pixel - y * layer.columns;
        F best = N::c(-3.4e38f);
        UNROLL for (int k = 0; k < 9; ++k) {
          const int row = 2 * y + k / 3 < layer.height ? 2 * y + k / 3 : layer.height - 1;
          const int column = 2 * x + k % 3 < layer.width ? 2 * x + k % 3 : layer.width - 1;
          const F given = N::load(from + row * layer.from_row + column * layer.from_pixel + at);
          best = N::select(given < best, best, given);
        }
        N::store(into + y * layer.into_row + x * layer.into_pixel + at, best);
      } else {
        // Of a cell; where there are fewer pixels than cells, they share them.
        const int cell = part / layer.blocks, cells = layer.columns, row = cell / cells, column = cell - row * cells;
        const int top = row * layer.height / cells, bottom = ((row + 1) * layer.height + cells - 1) / cells;
        const int left = column * layer.width / cells, right = ((column + 1) * layer.width + cells - 1) / cells;
        F sum = N::c(0.0f);
        for (int y = top; y < bottom; ++y)
          for (int x = left; x < right; ++x) sum = sum + N::load(from + y * layer.from_row + x * layer.from_pixel + at);
        const F mean = sum / N::c((float)((bottom - top) * (right - left)));
        N::store(scores.data + ((size_t)image * layer.count + cell) * 16 * layer.blocks + at, mean);
      }
    }
  }
}

// A CPU runs all layers of an image after each other, image after image, and the task is one of `slots` pieces of work memory; a
// GPU runs one part of one layer of one image, `items` of each.
const bool alone = LANES == 1;
const Layer* layers = (const Layer*)table.data;
for (int image = alone ? task / items : task; image < count; image += alone ? count : slots) {
  float* memory = work.data + (size_t)(alone ? image : task) * work_stride;
  const unsigned char* pixels = images.data + (size_t)image * image_stride;
  for (int number = first_layer; number < last_layer; ++number) {
    const Layer& layer = layers[number];
    const float* from = memory + layer.from;
    float* into = memory + layer.into;
    const int end = alone ? task % items + 1 : layer.items();
    for (int item = alone ? task % items : 0; item < end; ++item) {
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
        const int tiles = alone ? (layer.count + PIXELS_1 - 1) / PIXELS_1 : 1, block = part / tiles;
        const int first = (part - block * tiles) * PIXELS_1, channel = block * 16 * (NARROW ? 1 : layer.vectors);
        if (NARROW || layer.vectors == 1) Convolve1::group(layer, memory, weights.data, channel, first, lane);
#if !NARROW
        else if (layer.vectors == 2) Convolve2::group(layer, memory, weights.data, channel, first, lane);
        else if (layer.vectors == 3) Convolve3::group(layer, memory, weights.data, channel, first, lane);
        else if (layer.vectors == 4) Convolve4::group(layer, memory, weights.data, channel, first, lane);
#endif
#if !NARROW && LANES != 1
        else if (layer.vectors == 5) Convolve5::group(layer, memory, weights.data, channel, first, lane);
        else Convolve7::group(layer, memory, weights.data, channel, first, lane);
#endif
        continue;
      }
      if (layer.kind == DEPTHWISE) {
        const int vector = alone ? part / layer.count : part, at = 16 * vector + lane;
        const float* w = weights.data + layer.weights + 16 * vector * layer.rows * layer.length + lane;
        const float* b = weights.data + layer.bias + at;
#if LANES != 1
        // Rows of fewer pixels than are filtered together, and other filters, go pixel by pixel.
        const int form = layer.columns < PIXELS_FILTER ? 0 : 10 * layer.rows + layer.stride;
        if (form == 31) Filter3_1::all(layer, from + at, into + at, w, b);
        else if (form == 32) Filter3_2::all(layer, from + at, into + at, w, b);
        else if (form == 51) Filter5_1::all(layer, from + at, into + at, w, b);
        else if (form == 52) Filter5_2::all(layer, from + at, into + at, w, b);
        else
#endif
          Filter::run(layer, from + at, into + at, w, b, alone ? part % layer.count : 0, alone ? 1 : layer.count);
        continue;
      }
      if (layer.kind == POOL) {
        // A GPU: a channel; a CPU: all channels.
        const int pixel = alone ? part / layer.blocks : part, at = alone ? part % layer.blocks * 16 + lane : 0;
        Pool::run(layer, from, into, pixel, at, alone ? at + 1 : 16 * layer.blocks);
        continue;
      }
      // The mean of a cell; where there are fewer pixels than cells, they share them.
      const int vector = part % layer.blocks, at = 16 * vector + lane;
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

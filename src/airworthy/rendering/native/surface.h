// What a ray has hit: position, normals, texture coordinates, material, and from them the numbers that light meets.
// Needs batch.h and textures.h. Arrays are described in airworthy.scenes.appearance.
struct Appearance {
  const float* materials;        // (material, MATERIAL_COLUMNS)
  const int* maps;               // (material, 8)
  const int* shape_appearance;        // (shape, 4): first vertex, first face, flags
  const unsigned int* vertices;  // (vertex, VERTEX_SIZE)
  const unsigned int* faces;     // (face, FACE_SIZE)
  Textures textures;
};
struct Found {  // of 16 rays; where instance < 0 the rest is meaningless
  F range;
  I instance, face;
  F b1, b2;     // weights of the second and third corner
  V3 local;     // in the instance's frame, before its scale
};
struct Surface {
  V3 point;                // world
  V3 geometric, normal;    // world: of the shape, and with vertex normals and normal map
  V3 albedo, emission;
  F alpha, cutoff, metallic, roughness, occlusion;
  F passing, ior;          // of glass; filled in by who asks
  V3 body;                 // light that a volume behind sends back; filled in by who asks
  F backface;              // 1 where a closed solid, or a face's back, is seen
  I instance, material;
};
// Numbers of a hit that differ from lane to lane, fetched lane by lane.
struct Fetched {
  F rotation[9], scale, position[3];
  F corner_normal[3][3], uv[3][2], color[3][4], occlusion[3], tangent[3], hand;
  F outward[3], density;
  I material, flags, kind, static_slot;
};
struct Surfaces {
  static INLINE F whole(U bits) { return N::from_int(N::signed_of(bits)); }
  static INLINE void unfold(U packed, F* n) {
    F x = whole(packed & N::u(65535u)) * (2.0f / 65535.0f) - 1.0f, y = whole(packed >> 16u) * (2.0f / 65535.0f) - 1.0f;
    const F z = 1.0f - N::abs(x) - N::abs(y), one = N::c(1.0f), less = N::c(-1.0f);
    const M folded = z < 0.0f;
    const F kept = x;
    x = N::select(folded, (1.0f - N::abs(y)) * N::select(x < 0.0f, less, one), x);
    y = N::select(folded, (1.0f - N::abs(kept)) * N::select(y < 0.0f, less, one), y);
    const F length = N::sqrt(x * x + y * y + z * z);
    n[0] = x / length, n[1] = y / length, n[2] = z / length;
  }
  // One corner of the faces that lanes `m` have hit: `at` is its place among the packed words.
  static INLINE void fetch_corner(const unsigned int* words, I at, M m, int corner, Fetched& o) {
    F n[3];
    unfold(W::gather(words, at), n);
    for (int k = 0; k < 3; ++k) o.corner_normal[corner][k] = N::select(m, n[k], o.corner_normal[corner][k]);
    for (int k = 0; k < 2; ++k) o.uv[corner][k] = N::select(m, N::from_bits(W::gather(words, at + (1 + k))), N::c(0.0f));
    const U color = W::gather(words, at + 3), rest = W::gather(words, at + 4);
    for (int k = 0; k < 3; ++k) {
      const F c = whole((color >> (unsigned int)(9 * k)) & N::u(511u)) * (1.0f / 510.0f);
      o.color[corner][k] = N::select(m, c * c, o.color[corner][k]);
    }
    o.color[corner][3] = N::select(m, whole(color >> 27u) * (1.0f / 31.0f), o.color[corner][3]);
    o.tangent[corner] = N::select(m, whole(rest & N::u(32767u)) * (6.28318531f / 32768.0f), o.tangent[corner]);
    o.hand = N::select(m, N::select((rest & N::u(32768u)) != 0u, N::c(-1.0f), N::c(1.0f)), o.hand);
    o.occlusion[corner] = N::select(m, whole(rest >> 16u) * (1.0f / 65535.0f), o.occlusion[corner]);
  }
  // What lanes know of the faces of meshes that they have hit. All lanes read at once: most of the time goes into waiting for memory.
  static INLINE void fetch_faces(const Batch& batch, const Appearance& appearance, I face, I corner, I vertex, I point, Fetched& o) {
    const M m = face >= 0;
    const I safe = W::pick(m, face, W::i(0)) * FACE_SIZE;
    o.material = o.material + W::pick(m, N::signed_of(W::gather(appearance.faces, safe)), W::i(0));
    o.density = N::select(m, N::from_bits(W::gather(appearance.faces, safe + 1)), o.density);
    F p[3][3];
    for (int k = 0; k < 3; ++k) {
      const I number = W::gather(batch.faces, corner + k), at = (point + number) * 3;
      fetch_corner(appearance.vertices, (vertex + number) * VERTEX_SIZE, m, k, o);
      for (int i = 0; i < 3; ++i) p[k][i] = W::gather(batch.vertices, at + i);
    }
    const V3 e = {p[1][0] - p[0][0], p[1][1] - p[0][1], p[1][2] - p[0][2]}, g = {p[2][0] - p[0][0], p[2][1] - p[0][1], p[2][2] - p[0][2]};
    const V3 n = e.cross(g);
    const F length = N::sqrt(n.x * n.x + n.y * n.y + n.z * n.z), safe_length = N::select(length > 0.0f, length, N::c(1.0f));
    const F* of[3] = {&n.x, &n.y, &n.z};
    for (int k = 0; k < 3; ++k) o.outward[k] = N::select(m, N::select(length > 0.0f, *of[k] / safe_length, N::c(0.0f)), o.outward[k]);
  }
  // A solid's outward normal where it was hit, in its own frame.
  static INLINE void solid_normal(const ShapeRow& s, int face, const float* p, float* n) {
    n[0] = n[1] = n[2] = 0.0f;
    if (s.kind == KIND_BOX) {
      n[face >> 1] = (face & 1) ? 1.0f : -1.0f;
    } else if (s.kind == KIND_CYLINDER && face > 0) {
      n[2] = face == 1 ? -1.0f : 1.0f;
    } else {
      const float half = s.kind == KIND_CAPSULE ? s.size[1] : 0.0f;
      const float z = s.kind == KIND_CYLINDER ? 0.0f : (p[2] > half ? p[2] - half : (p[2] < -half ? p[2] + half : 0.0f));
      const float length = ::sqrtf(p[0] * p[0] + p[1] * p[1] + z * z);
      const float inverse = length > 0.0f ? 1.0f / length : 0.0f;
      n[0] = p[0] * inverse, n[1] = p[1] * inverse, n[2] = z * inverse;
    }
  }
  // Of a mesh's face: its number among all, its first corner's place, and where vertices of the mesh begin, packed and as points.
  struct Face {
    I face, corner, vertex, point;
  };
  static INLINE void fetch_lane(const Batch& batch, const Appearance& appearance, int env, const Found& hit, int lane, Fetched& o, Face& of) {
    const int number = W::get(hit.instance, lane);
    if (number < 0) return;
    const InstanceRow& row = *batch.instance(env, number);
    const ShapeRow& shape = batch.shapes[row.shape];
    for (int k = 0; k < 9; ++k) W::set(o.rotation[k], lane, row.rotation[k]);
    for (int k = 0; k < 3; ++k) W::set(o.position[k], lane, row.position[k]);
    W::set(o.scale, lane, row.scale);
    W::set(o.kind, lane, shape.kind);
    W::set(o.static_slot, lane, number >= batch.dynamic_start ? -1 : batch.layouts[batch.env_layout[env]].first + number);
    const int face = W::get(hit.face, lane);
    W::set(o.material, lane, row.material);
    if (shape.kind == KIND_MESH) {
      const int* about = appearance.shape_appearance + 4 * row.shape;
      W::set(o.flags, lane, about[2]);
      W::set(of.face, lane, about[1] + face);
      W::set(of.corner, lane, 3 * (shape.first_face + face));
      W::set(of.vertex, lane, about[0]);
      W::set(of.point, lane, shape.first_vertex);
      return;
    }
    float n[3];
    const float p[3] = {W::get(hit.local.x, lane), W::get(hit.local.y, lane), W::get(hit.local.z, lane)};
    solid_normal(shape, face, p, n);
    for (int k = 0; k < 3; ++k) W::set(o.outward[k], lane, n[k]);
  }
  static INLINE V3 turned(const F* r, const V3& v) {
    return {r[0] * v.x + r[1] * v.y + r[2] * v.z, r[3] * v.x + r[4] * v.y + r[5] * v.z, r[6] * v.x + r[7] * v.y + r[8] * v.z};
  }
  static INLINE F blend(const F (*c)[3], int k, F b0, F b1, F b2) { return c[0][k] * b0 + c[1][k] * b1 + c[2][k] * b2; }
  // Two vectors that complete a unit vector to a basis (Duff et al., Building an orthonormal basis, revisited, 2017).
  static INLINE void basis(const V3& n, V3& s, V3& t) {
    const F sign = N::select(n.z < 0.0f, N::c(-1.0f), N::c(1.0f));
    const F a = N::c(-1.0f) / (sign + n.z), b = n.x * n.y * a;
    s = {sign * n.x * n.x * a + 1.0f, sign * b, -(sign * n.x)};
    t = {b, sign + n.y * n.y * a, -n.y};
  }
  // Cosine and sine of an angle in [0, 2 pi), to 3e-5, which is finer than the angle was stored.
  static INLINE void circle(F angle, F& c, F& s) {
    const F quarter = N::floor(angle * 0.636619772f + 0.5f), r = angle - quarter * 1.57079633f, z = r * r;
    const F sine = r + r * z * (z * 8.3333e-3f - 0.16666667f), cosine = z * (z * (4.1666668e-2f - z * 1.3888889e-3f) - 0.5f) + 1.0f;
    const I q = W::to_int(quarter);
    const M odd = (q & 1) != 0;
    const F a = N::select(odd, sine, cosine), b = N::select(odd, cosine, sine);
    c = N::select(((q + 1) & 2) != 0, -a, a);
    s = N::select((q & 2) != 0, -b, b);
  }
  // Everything about 16 hits. footprint: metres that a pixel covers across the ray, per metre of range.
  SHADING_FUNCTION Surface at(const Batch& batch, const Appearance& appearance, int env, const V3& towards, F spread, const Found& hit, Fetched& o,
                    bool shading) {
    for (int k = 0; k < 3; ++k) o.outward[k] = o.position[k] = N::c(0.0f);
    for (int k = 0; k < 9; ++k) o.rotation[k] = N::c(k % 4 == 0 ? 1.0f : 0.0f);
    for (int c = 0; c < 3; ++c) {
      o.tangent[c] = o.uv[c][0] = o.uv[c][1] = N::c(0.0f);
      o.occlusion[c] = N::c(1.0f);
      for (int k = 0; k < 4; ++k) o.color[c][k] = N::c(1.0f);
      for (int k = 0; k < 3; ++k) o.corner_normal[c][k] = N::c(k == 2 ? 1.0f : 0.0f);
    }
    o.scale = o.hand = N::c(1.0f);
    o.density = N::c(0.0f);
    o.material = o.flags = o.kind = W::i(0);
    o.static_slot = W::i(-1);
    Face of = {W::i(-1), W::i(0), W::i(0), W::i(0)};
    for (int k = 0; k < LANES; ++k) fetch_lane(batch, appearance, env, hit, k, o, of);
    if (N::any(of.face >= 0)) fetch_faces(batch, appearance, of.face, of.corner, of.vertex, of.point, o);
    Surface s;
    s.instance = hit.instance;
    s.material = o.material;
    const F b0 = N::c(1.0f) - hit.b1 - hit.b2;
    const V3 metric = hit.local * o.scale;
    s.point = turned(o.rotation, metric) + V3{o.position[0], o.position[1], o.position[2]};
    const V3 outward = {o.outward[0], o.outward[1], o.outward[2]};
    const V3 world_outward = turned(o.rotation, outward);
    const M back = world_outward.dot(towards) < 0.0f;
    s.backface = N::select(back, N::c(1.0f), N::c(0.0f));
    s.geometric = V3::select(back, world_outward * N::c(-1.0f), world_outward);
    // Vertex normals, turned to the side that is seen.
    const M smooth = (o.flags & 1) != 0;
    V3 normal = outward;
    if (N::any(smooth)) {
      const V3 mean = V3{blend(o.corner_normal, 0, b0, hit.b1, hit.b2), blend(o.corner_normal, 1, b0, hit.b1, hit.b2),
                         blend(o.corner_normal, 2, b0, hit.b1, hit.b2)}.unit();
      normal = V3::select(smooth, mean, normal);
    }
    const V3 vertex_normal = normal;
    // Texture coordinates: the mesh's, or along the dominant axis of the local normal.
    const I base = o.material * MATERIAL_COLUMNS;
    const F inverse_size = W::gather(appearance.materials, base + 12);
    const M mapped = ((o.flags & 2) != 0) & (inverse_size == 0.0f);
    const V3 size = {N::abs(outward.x), N::abs(outward.y), N::abs(outward.z)};
    const M along_x = (size.x >= size.y) & (size.x >= size.z), along_y = N::invert(along_x) & (size.y >= size.z);
    const F repeat = N::select(inverse_size == 0.0f, N::c(1.0f / UNWRAPPED_SIZE), inverse_size);
    const V3 q = metric * repeat;
    const F one = N::c(1.0f), nil = N::c(0.0f);
    const F side_x = N::select(outward.x < 0.0f, N::c(-1.0f), one), side_y = N::select(outward.y < 0.0f, one, N::c(-1.0f));
    F u = N::select(along_x, q.y * side_x, N::select(along_y, q.x * side_y, q.x));
    F v = N::select(along_x, -q.z, N::select(along_y, -q.z, N::select(outward.z < 0.0f, q.y, -q.y)));
    V3 tangent = {N::select(along_x, nil, N::select(along_y, side_y, one)), N::select(along_x, side_x, nil), nil};
    F hand = N::c(-1.0f);
    F density = repeat;
    if (N::any(mapped)) {
      const F mu = o.uv[0][0] * b0 + o.uv[1][0] * hit.b1 + o.uv[2][0] * hit.b2;
      const F mv = o.uv[0][1] * b0 + o.uv[1][1] * hit.b1 + o.uv[2][1] * hit.b2;
      u = N::select(mapped, mu, u);
      v = N::select(mapped, mv, v);
      density = N::select(mapped, o.density / o.scale, repeat);
      hand = N::select(mapped, o.hand, hand);
    }
    const F scale_u = W::gather(appearance.materials, base + 10), scale_v = W::gather(appearance.materials, base + 11);
    u = u * scale_u;
    v = v * scale_v;
    const F cosine = W::maximum(N::abs(s.geometric.dot(towards)), N::c(0.06f));
    // Between the short and the long axis of the pixel's trace: sharp enough at grazing angles, and not aliased.
    const F wide = hit.range * spread / N::sqrt(cosine);
    const F footprint = wide * density * W::maximum(N::abs(scale_u), N::abs(scale_v));
    const I map_base = o.material * 8;
    const Texel color = appearance.textures.sample(W::gather(appearance.maps, map_base), u, v, footprint);
    V3 albedo = color.rgb * V3{W::gather(appearance.materials, base), W::gather(appearance.materials, base + 1), W::gather(appearance.materials, base + 2)};
    s.alpha = color.alpha * W::gather(appearance.materials, base + 3) * (o.color[0][3] * b0 + o.color[1][3] * hit.b1 + o.color[2][3] * hit.b2);
    s.cutoff = W::gather(appearance.materials, base + 14);
    if (!shading) return s;
    const V3 tint = {o.color[0][0] * b0 + o.color[1][0] * hit.b1 + o.color[2][0] * hit.b2,
                     o.color[0][1] * b0 + o.color[1][1] * hit.b1 + o.color[2][1] * hit.b2,
                     o.color[0][2] * b0 + o.color[1][2] * hit.b1 + o.color[2][2] * hit.b2};
    albedo = albedo * tint;
    const I detail = W::gather(appearance.maps, map_base + 5);
    if (N::any(detail >= 0)) {
      const F often = W::gather(appearance.materials, base + 13);
      const Texel fine = appearance.textures.sample(detail, u * often, v * often, footprint * often);
      const V3 twice = fine.rgb * N::c(2.0f);
      albedo = V3::select(detail >= 0, albedo * twice, albedo);
    }
    s.albedo = {W::clamp(albedo.x, 0.0f, 1.0f), W::clamp(albedo.y, 0.0f, 1.0f), W::clamp(albedo.z, 0.0f, 1.0f)};
    s.metallic = W::gather(appearance.materials, base + 4);
    s.roughness = W::gather(appearance.materials, base + 5);
    const Texel rough = appearance.textures.sample(W::gather(appearance.maps, map_base + 1), u, v, footprint);
    s.roughness = W::clamp(s.roughness * rough.rgb.y, 0.03f, 1.0f);
    s.metallic = W::clamp(s.metallic * rough.rgb.z, 0.0f, 1.0f);
    s.emission = V3{W::gather(appearance.materials, base + 6), W::gather(appearance.materials, base + 7), W::gather(appearance.materials, base + 8)};
    if (N::any((s.emission.x + s.emission.y + s.emission.z) > 0.0f))
      s.emission = s.emission * appearance.textures.sample(W::gather(appearance.maps, map_base + 4), u, v, footprint).rgb;
    s.occlusion = appearance.textures.sample(W::gather(appearance.maps, map_base + 3), u, v, footprint).rgb.x;
    s.occlusion = s.occlusion * (o.occlusion[0] * b0 + o.occlusion[1] * hit.b1 + o.occlusion[2] * hit.b2);
    const I bumps = W::gather(appearance.maps, map_base + 2);
    const M bumpy = bumps >= 0;
    if (N::any(bumpy)) {
      if (N::any(mapped)) {
        V3 first, second;
        basis(vertex_normal, first, second);
        // Angles of the corners are summed as vectors: they may straddle the turn.
        F c0, s0, c1, s1, c2, s2;
        circle(o.tangent[0], c0, s0);
        circle(o.tangent[1], c1, s1);
        circle(o.tangent[2], c2, s2);
        V3 sum = V3::all(nil);
        const F weight[3] = {b0, hit.b1, hit.b2}, cs[3] = {c0, c1, c2}, sn[3] = {s0, s1, s2};
        for (int k = 0; k < 3; ++k) {
          V3 e, f;
          basis(V3{o.corner_normal[k][0], o.corner_normal[k][1], o.corner_normal[k][2]}, e, f);
          sum = sum + (e * cs[k] + f * sn[k]) * weight[k];
        }
        tangent = V3::select(mapped, sum, tangent);
      }
      const V3 along = (tangent - vertex_normal * vertex_normal.dot(tangent)).unit();
      const V3 up = vertex_normal.cross(along) * hand * N::c(-1.0f);  // green points against growing v
      const Texel bump = appearance.textures.sample(bumps, u, v, footprint);
      const F strength = W::gather(appearance.materials, base + 9);
      const F bx = (bump.rgb.x * 2.0f - 1.0039216f) * strength, by = (bump.rgb.y * 2.0f - 1.0039216f) * strength;
      const F bz = W::maximum(bump.rgb.z * 2.0f - 1.0039216f, N::c(0.02f));
      normal = V3::select(bumpy, (along * bx + up * by + vertex_normal * bz).unit(), vertex_normal);
    }
    normal = turned(o.rotation, normal);
    normal = V3::select(back, normal * N::c(-1.0f), normal);
    // A bent normal may look away from the eye: it is brought back to where a surface is just seen.
    const F facing = normal.dot(towards);
    const F lift = W::maximum(N::c(0.02f) - facing, N::c(0.0f));
    s.normal = (normal + towards * lift).unit();
    return s;
  }
};

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
  F thin;                  // share of diffuse light that passes to the other side; filled in by who asks
  V3 passed;               // its albedo there; filled in by who asks
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
// Rows of the instances that lanes have hit, gathered word by word: static ones and dynamic ones lie in two arrays. At least one lane
// has hit something; what the others read means nothing.
struct HitRows {
  enum { SIZE = 24, ROTATION = 0, SCALE = 9, INVERSE_SCALE = 10, POSITION = 11, SHAPE = 17, MATERIAL = 20 };  // words of an InstanceRow
  enum { SHAPE_SIZE = 16, HALF_LENGTH = 3, FIRST_FACE = 12, FIRST_VERTEX = 14 };                              // of a ShapeRow
  const InstanceRow *fixed, *moving;
  I at, moved;
  M moves;
  bool stands, goes;
  INLINE HitRows(const Batch& batch, int env, I instance) {
    const M there = instance >= 0;
    moves = there & (instance >= batch.dynamic_start);
    const M still = there & (instance < batch.dynamic_start);
    stands = N::any(still), goes = N::any(moves);
    fixed = batch.instances(env, 0), moving = batch.instances(env, 1);
    at = moved = W::i(0);
    if (stands) at = W::pick(still, instance, W::i(L::at(instance, L::first(still)))) * (int)SIZE;
    if (goes) moved = W::pick(moves, instance - batch.dynamic_start, W::i(0)) * (int)SIZE;
  }
  INLINE F real(int word) const {
    F out = N::c(0.0f);
    if (stands) out = W::gather((const float*)fixed, at + word);
    if (goes) out = N::select(moves, W::gather((const float*)moving, moved + word), out);
    return out;
  }
  INLINE I whole(int word) const {
    I out = W::i(0);
    if (stands) out = W::gather((const int*)fixed, at + word);
    if (goes) out = W::pick(moves, W::gather((const int*)moving, moved + word), out);
    return out;
  }
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
  // Outward normals of solids where they were hit, in their own frames.
  static INLINE void solid_normals(I kind, I face, F half_length, const V3& p, F* n) {
    const F none = N::c(0.0f), one = N::c(1.0f), less = N::c(-1.0f);
    const M box = kind == (int)KIND_BOX, lid = (kind == (int)KIND_CYLINDER) & (face > 0);
    const F half = N::select(kind == (int)KIND_CAPSULE, half_length, none);
    const F over = N::select(p.z > half, p.z - half, N::select(p.z < -half, p.z + half, none));
    const F z = N::select(kind == (int)KIND_CYLINDER, none, over), length = N::sqrt(p.x * p.x + p.y * p.y + z * z);
    const F inverse = N::select(length > 0.0f, one / N::select(length > 0.0f, length, one), none);
    const F round[3] = {p.x * inverse, p.y * inverse, z * inverse}, side = N::select((face & 1) != 0, one, less);
    for (int k = 0; k < 3; ++k) {
      const F flat = k == 2 ? N::select(face == 1, less, one) : none;
      n[k] = N::select(box, N::select((face >> 1) == k, side, none), N::select(lid, flat, round[k]));
    }
  }
  // Of a mesh's face: its number among all, its first corner's place, and where vertices of the mesh begin, packed and as points.
  struct Face {
    I face, corner, vertex, point;
  };
  // What lanes know of the instances that they have hit.
  static INLINE void fetch_instances(const Batch& batch, const Appearance& appearance, int env, const Found& hit, Fetched& o, Face& of) {
    const M there = hit.instance >= 0;
    if (!N::any(there)) return;
    const HitRows rows(batch, env, hit.instance);
    for (int k = 0; k < 9; ++k) o.rotation[k] = N::select(there, rows.real(HitRows::ROTATION + k), o.rotation[k]);
    for (int k = 0; k < 3; ++k) o.position[k] = N::select(there, rows.real(HitRows::POSITION + k), o.position[k]);
    o.scale = N::select(there, rows.real(HitRows::SCALE), o.scale);
    o.material = W::pick(there, rows.whole(HitRows::MATERIAL), o.material);
    const I shape = W::pick(there, rows.whole(HitRows::SHAPE), W::i(0)), row = shape * (int)HitRows::SHAPE_SIZE;
    const int* shapes = (const int*)batch.shapes;
    o.kind = W::pick(there, W::gather(shapes, row), o.kind);
    const int first = batch.layouts[batch.env_layout[env]].first;
    o.static_slot = W::pick(there & (hit.instance < batch.dynamic_start), hit.instance + first, o.static_slot);
    const M mesh = there & (o.kind == (int)KIND_MESH);
    if (N::any(mesh)) {
      const int* about = appearance.shape_appearance;
      o.flags = W::pick(mesh, W::gather(about, shape * 4 + 2), o.flags);
      of.face = W::pick(mesh, W::gather(about, shape * 4 + 1) + hit.face, of.face);
      of.corner = W::pick(mesh, (W::gather(shapes, row + (int)HitRows::FIRST_FACE) + hit.face) * 3, of.corner);
      of.vertex = W::pick(mesh, W::gather(about, shape * 4), of.vertex);
      of.point = W::pick(mesh, W::gather(shapes, row + (int)HitRows::FIRST_VERTEX), of.point);
    }
    const M solid = there & N::invert(mesh);
    if (!N::any(solid)) return;
    F n[3];
    solid_normals(o.kind, hit.face, W::gather((const float*)batch.shapes, row + (int)HitRows::HALF_LENGTH), hit.local, n);
    for (int k = 0; k < 3; ++k) o.outward[k] = N::select(solid, n[k], o.outward[k]);
  }
  // Materials of the faces that lanes `there`, one or more, have hit; of the others any.
  static INLINE I materials(const Batch& batch, const Appearance& appearance, int env, M there, I instance, I face) {
    const HitRows rows(batch, env, W::pick(there, instance, W::i(-1)));
    const I shape = W::pick(there, rows.whole(HitRows::SHAPE), W::i(0));
    const M mesh = there & (W::gather((const int*)batch.shapes, shape * (int)HitRows::SHAPE_SIZE) == (int)KIND_MESH);
    I out = W::pick(there, rows.whole(HitRows::MATERIAL), W::i(0));
    if (!N::any(mesh)) return out;
    const I number = W::pick(mesh, W::gather(appearance.shape_appearance, shape * 4 + 1) + face, W::i(0));
    return out + W::pick(mesh, N::signed_of(W::gather(appearance.faces, number * FACE_SIZE)), W::i(0));
  }
  // Points of hits in their instances' frames, before their scale.
  static INLINE void place(const Batch& batch, int env, const V3& point, Found& hit) {
    const M there = hit.instance >= 0;
    if (!N::any(there)) return;
    const HitRows rows(batch, env, hit.instance);
    const F x = point.x - rows.real(HitRows::POSITION), y = point.y - rows.real(HitRows::POSITION + 1);
    const F z = point.z - rows.real(HitRows::POSITION + 2), inverse = rows.real(HitRows::INVERSE_SCALE);
    F local[3];
    for (int k = 0; k < 3; ++k)
      local[k] = (rows.real(HitRows::ROTATION + k) * x + rows.real(HitRows::ROTATION + 3 + k) * y + rows.real(HitRows::ROTATION + 6 + k) * z) * inverse;
    hit.local = V3::select(there, V3{local[0], local[1], local[2]}, hit.local);
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
    fetch_instances(batch, appearance, env, hit, o, of);
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

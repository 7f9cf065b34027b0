// The shapes of many environments as native code sees them. Included in the body of a Warp native function after `prelude.h`;
// the arguments of that function include the arrays of BATCH_ARGUMENTS (airworthy.geometry.batch), by these names.
//
//   arrays (32-bit words)      rows                      what
//   shape_rows                 ShapeRow per shape        kind, size, bounds, where its tree and its triangles are
//   mesh_nodes                 TreeNode                  trees of all unique meshes, one after the other
//   mesh_triangles             TriangleRow               triangles in leaf order
//   mesh_vertices, mesh_faces  3 floats, 3 ints          as the user gave them; ShapeRow says where a mesh's own begin
//   layout_rows                LayoutRow per layout      a static layer, shared by the environments that use it
//   layout_nodes               TreeNode                  top level of each layout; leaves hold InstanceRows of the layout
//   layout_instances           InstanceRow               `capacity` per layout
//   env_layout                 1 int per environment     its layout
//   dynamic_nodes              TreeNode, 2 m per env     top level of each environment's m dynamic instances, root first
//   dynamic_instances          InstanceRow, m per env
//   batch_numbers              dynamic_start, dynamic_count, env_count, layout_count
//
// A tree is binary. A node's children lie side by side at `first` and `first + 1`; a leaf has count > 0 items. Of a mesh these are
// triangles first ... first + count - 1 of `mesh_triangles`; of a top level exactly one, instance number `first` of the layer.
// Numbers of nodes are absolute in their array; a mesh's triangles too. An empty tree is one node whose bounds contain nothing.
// A top level with things that are seen and cast no shadow, or are shadows alone, has at its root the "axis" TREE_KINDS: its first
// child is the tree of all others; the second one's children are the trees of those, in this order, which rays need not enter.
// No path is deeper than 60, so a stack of 64 always suffices. Bounds of a top level are rounded outwards.
// An instance number is the row within the layer: 0 ... of the layout, dynamic_start + k of the dynamic instances. A shape point
// p (shape frame) is at rotation p * scale + position. A position is the sum of two floats, so that far from the origin nothing
// is lost.
// Results must not depend on the shape of a top level, only on its leaves (each tree is only a way to skip).
enum { KIND_BOX = 0, KIND_SPHERE = 1, KIND_CYLINDER = 2, KIND_CAPSULE = 3, KIND_MESH = 4 };
enum { INSTANCE_VISIBLE = 1, INSTANCE_COLLIDES = 2, INSTANCE_NO_SHADOW = 4, INSTANCE_SHADOW_ONLY = 8 };  // 0: inactive, in no tree
enum { TREE_STACK = 64 };
enum { TREE_KINDS = 3 };  // in place of an axis: a top level's root over what is seen and shades, and a second such node over the rest
struct TreeNode {  // 32 bytes
  float lower[3];
  int first;       // left child, or first item of a leaf
  float upper[3];
  int count;       // > 0: leaf; else minus the axis along which the children were parted, the left one being lower
};
struct TriangleRow {  // 48 bytes
  float a[3];
  int face;  // number in the user's mesh
  float b[3];
  float spare;
  float c[3];
  float spare_too;
};
struct ShapeRow {  // 64 bytes
  int kind;
  int root;          // in mesh_nodes
  float size[3];     // box: half size; sphere: radius; cylinder and capsule: radius, half length of the straight part
  float extent;      // largest absolute coordinate of the bounds
  float lower[3], upper[3];
  int first_face, face_count, first_vertex, vertex_count;
};
struct InstanceRow {  // 96 bytes
  float rotation[9];  // local to world, row by row
  float scale, inverse_scale;
  float position[3], position_rest[3];
  int shape, instance_id, semantic_id, material, flags;
  int group;  // > 0: segments may pass through all instances of one group
  unsigned int footprint;  // upper halves of two floats: seen where a pixel covers from the low one to less than the high one [m]
};
struct LayoutRow {  // 16 bytes
  int root;   // in layout_nodes
  int first;  // in layout_instances
  int count, capacity;
};
struct Batch {
  const ShapeRow* shapes;
  const TreeNode* mesh_nodes;
  const TriangleRow* triangles;
  const float* vertices;
  const int* faces;
  const LayoutRow* layouts;
  const TreeNode* layout_nodes;
  const InstanceRow* layout_instances;
  const int* env_layout;
  const TreeNode* dynamic_nodes;
  const InstanceRow* dynamic_instances;
  int dynamic_start, dynamic_count;
  // Of whoever sees: where the eye is, and the angle that a pixel covers [rad]; by these levels of detail are chosen, for shadows as
  // for what is seen. 0: the finest.
  float eye[3];
  float pixel;
  // Whether an instance is of the level of detail that the eye sees.
  INLINE bool shown(const InstanceRow& row) const {
    const ShapeRow& shape = shapes[row.shape];
    const float up = row.position[2] + row.scale * (0.5f * shape.lower[2] + 0.5f * shape.upper[2]);
    const float x = row.position[0] - eye[0], y = row.position[1] - eye[1], z = up - eye[2];
    const float covered = pixel * ::sqrtf(x * x + y * y + z * z);
    union { unsigned int word; float value; } low, high;
    low.word = row.footprint << 16;
    high.word = row.footprint & 0xffff0000u;
    return covered >= low.value && (high.word == 0u || covered < high.value);
  }
  // The two layers of an environment: 0 static, 1 dynamic instances.
  INLINE const TreeNode* nodes(int layer) const { return layer ? dynamic_nodes : layout_nodes; }
  INLINE int root(int env, int layer) const { return layer ? env * 2 * dynamic_count : layouts[env_layout[env]].root; }
  INLINE const InstanceRow* instances(int env, int layer) const {
    return layer ? dynamic_instances + (long long)env * dynamic_count : layout_instances + layouts[env_layout[env]].first;
  }
  INLINE int first_number(int layer) const { return layer ? dynamic_start : 0; }
  // Row of an instance number as hits give it.
  INLINE const InstanceRow* instance(int env, int number) const {
    return number >= dynamic_start ? instances(env, 1) + (number - dynamic_start) : instances(env, 0) + number;
  }
  // Corner k of a face (the user's number) of a mesh.
  INLINE const float* corner(const ShapeRow& shape, int face, int k) const {
    return vertices + 3 * (shape.first_vertex + (long long)faces[3 * (shape.first_face + (long long)face) + k]);
  }
};
#define BATCH_OF_ARGUMENTS                                                                                                   \
  {(const ShapeRow*)shape_rows.data,         (const TreeNode*)mesh_nodes.data,          (const TriangleRow*)mesh_triangles.data, \
   mesh_vertices.data,                       mesh_faces.data,                           (const LayoutRow*)layout_rows.data,      \
   (const TreeNode*)layout_nodes.data,       (const InstanceRow*)layout_instances.data, env_layout.data,                         \
   (const TreeNode*)dynamic_nodes.data,      (const InstanceRow*)dynamic_instances.data, batch_numbers.data[0],                   \
   batch_numbers.data[1],                    {0.0f, 0.0f, 0.0f},                        0.0f}

// One task of a launch: packets of one camera (or of segments); on a GPU one ray. Needs `traverse.h` as CameraCast and RayCast.
enum { PACKETS_PER_TASK = 16, RAY_ROWS = 7 };
enum {
  OUT_RANGE = 1, OUT_DEPTH = 2, OUT_POINT_WORLD = 4, OUT_POINT_SENSOR = 8, OUT_INSTANCE = 16, OUT_INSTANCE_ID = 32,
  OUT_SEMANTIC_ID = 64, OUT_FACE = 128, OUT_BARYCENTRIC = 256, OUT_NORMAL_WORLD = 512, OUT_NORMAL_SENSOR = 1024,
  OUT_LOCAL_POINT = 2048, CAST_OWN_ORIGINS = 4096, CAST_COLUMNS = 8192, CAST_SEGMENTS = 16384
};
struct CameraRow {  // 48 bytes; of a segment: start, end - start in `attitude`
  float position[3], rest[3], attitude[4];
  int env, ignore;
};
struct Sink {
  float *range, *depth, *point_world, *point_sensor;
  int *instance, *instance_id, *semantic_id, *face;
  float *barycentric, *normal_world, *normal_sensor, *local_point;
};

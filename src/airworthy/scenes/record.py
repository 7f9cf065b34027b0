"""The scene record: a place, and everything in it that can be seen or hit. No behaviour, no cameras.

Frames and units: world right-handed, z up; SI units; quaternions x, y, z, w, local to world; colours linear RGB unless a
texture says sRGB. Shapes, materials and textures are tables that instances refer to by name, so that a thousand trees cost one
mesh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from airworthy.core.arrays import ArrayU8
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.geometry import Shape

if TYPE_CHECKING:  # it is built of these records
    from airworthy.scenes.carved import CarvedSpace
    from airworthy.scenes.formats.model import Skeleton
    from airworthy.scenes.splats.record import Splats

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Color = tuple[float, float, float]
IDENTITY: Quaternion = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Texture:
    """An image that materials refer to by name."""

    pixels: ArrayU8
    """(height, width, 1, 3 or 4), row 0 at the top."""
    srgb: bool = True
    """Colour channels are sRGB-encoded (base colour, emission); False for data (normals, roughness, occlusion, height)."""
    wrap: Literal["repeat", "clamp", "mirror"] = "repeat"


LATER: dict[str, bool] = {"later": True}
"""Metadata of a field that joined its record after digests of scenes were stored: it counts in them only where it is not at its
default, so that what never said it keeps its digest (`scene_digest`)."""


@dataclass(frozen=True)
class Material:
    """Metallic-roughness surface, as glTF 2.0. Maps are names of the scene's textures; "" where there is none."""

    base_color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """Linear RGBA; multiplies the base colour map."""
    metallic: float = 0.0
    roughness: float = 0.8
    emissive: Color = (0.0, 0.0, 0.0)
    base_color_map: str = ""
    metallic_roughness_map: str = ""
    """Green: roughness; blue: metallic. A smoothness map is 1 - roughness and is turned when it is read."""
    normal_map: str = ""
    """Tangent space, OpenGL handedness (green up)."""
    normal_scale: float = 1.0
    occlusion_map: str = ""
    """Red channel; multiplies indirect light."""
    emissive_map: str = ""
    height_map: str = ""
    """Red channel, 0.5 is the surface; `height_scale` metres span 0..1. Kept for export and for baking into normals."""
    height_scale: float = 0.0
    detail_map: str = ""
    """Multiplies the base colour by twice its value, repeated `detail_repeat` times."""
    detail_repeat: float = 8.0
    uv_scale: tuple[float, float] = (1.0, 1.0)
    """Texture coordinates are multiplied by this. Shapes without coordinates use `texture_size`."""
    texture_size: float = 0.0
    """> 0: maps are laid along the dominant axes of the local frame, one repeat per this many metres (triplanar); 0: by uv."""
    double_sided: bool = True
    alpha_cutoff: float = 0.0
    """Base colour alpha below this is a hole, also for rays; 0: opaque."""
    transmission: Annotated[float, SHARE] = field(default=0.0, metadata=LATER)
    """> 0: a thin sheet of glass. Share of what it does not mirror that passes, tinted by the base colour, its way unbent; what
    neither passes nor is mirrored is kept. A window pane is one card; a box is two sheets."""
    ior: Annotated[float, Bound(1.0, 4.0)] = field(default=1.5, metadata=LATER)
    """Index of refraction of the sheet, which says how much it mirrors."""
    attenuation: Annotated[Color, Bound(0.0, 1e4, "1/m")] = field(default=(0.0, 0.0, 0.0), metadata=LATER)
    """Above 0, with `transmission`: the surface is no sheet but bounds a volume, water or solid glass, that begins behind its
    front. Light is bent by `ior`, and red, green and blue lose this share per metre there [1/m] (`scenes.materials.water`)."""
    scattered: Annotated[Color, SHARE] = field(default=(0.0, 0.0, 0.0), metadata=LATER)
    """Albedo of a volume so deep that nothing shows through it, seen from straight above: what mud or algae send back."""
    wave_slope: Annotated[float, Bound(0.0, 0.5)] = field(default=0.0, metadata=LATER)
    """Root of the mean square slope of waves on a volume's level surface (`rendering.water`): 0.05 a breath of wind, 0.17 a
    breeze of 5 m/s on open water. Colours alone show them."""
    translucency: Annotated[float, SHARE] = field(default=0.0, metadata=LATER)
    """Share of the light that is not mirrored that passes to the other side, scattered evenly there: a leaf, paper, cloth. The
    rest is reflected; both are tinted by the base colour."""
    translucent_tint: Annotated[Color, Bound(0.0, 4.0)] = field(default=(1.0, 1.0, 1.0), metadata=LATER)
    """Factor on the base colour of what passes: leaves let yellower light through than they reflect."""

    def varied(self, seed: int) -> Material:
        """Return a variant that shares the maps: level, hue, roughness, relief and scale changed as much as looks believable.

        It costs nothing, so that every environment of a batch may have its own; `MaterialRecipe.varied` draws the pattern anew.

        Args:
            seed: 0 gives the material itself.

        Raises:
            AirworthyError: The seed is no whole number from 0 on.
        """
        from airworthy.scenes.generators.seeding import checked, generator  # which is built of these records

        if checked("seed", seed, 0) == 0:
            return self
        level, hue, rough, relief, scale = generator("surface variant", seed).uniform(-1.0, 1.0, 5).tolist()
        red, green, blue, alpha = self.base_color
        gain, turn = 1.0 + 0.18 * level, 1.0 + 0.06 * hue
        tinted = (red * gain * turn, green * gain, blue * gain / turn)
        # A surface sends no more back than it gets; the hue is kept.
        over = max(1.0, *tinted)
        size = 1.0 + 0.1 * scale
        return replace(
            self,
            base_color=(tinted[0] / over, tinted[1] / over, tinted[2] / over, alpha),
            roughness=min(max(self.roughness * (1.0 + 0.15 * rough), 0.0), 1.0),
            normal_scale=self.normal_scale * (1.0 + 0.25 * relief),
            texture_size=self.texture_size * size,
            # Of what is laid by coordinates; never of a cut-out, whose edge would move.
            uv_scale=self.uv_scale
            if self.texture_size > 0.0 or self.alpha_cutoff > 0.0
            else (self.uv_scale[0] / size, self.uv_scale[1] / size),
        )


@dataclass(frozen=True)
class Decal:
    """A decal of the library laid on a tiled material; it is there again on every repeat."""

    name: str
    """As "leak" or "leak@3"."""
    at: tuple[float, float]
    """Its middle: from the tile's left edge, and down from its upper edge [m]."""
    side: float = 0.0
    """Of the decal [m]; 0: as its recipe says."""


def prefixed_material(material: Material, prefix: str) -> Material:
    """Return a material whose maps are named "PREFIX/..."."""
    maps: dict[str, Any] = {key: f"{prefix}/{value}" for key, value in vars(material).items() if key.endswith("_map") and value}
    return replace(material, **maps)


@dataclass(frozen=True)
class Instance:
    """One thing in the scene."""

    shape: str
    """Name in the scene's shapes."""
    position: Vector3 = (0.0, 0.0, 0.0)
    """World [m]; of an actor's part, in the actor's frame."""
    attitude: Quaternion = IDENTITY
    scale: float = 1.0
    """Uniform, > 0."""
    materials: tuple[str, ...] = ()
    """Names in the scene's materials, picked by the mesh's `face_material`; empty: the default material."""
    semantic: str = "object"
    """Class name; its number is in the scene's `semantics`."""
    instance_id: int = 0
    """Positive; 0: numbered from 100 on, in order, when the scene is placed."""
    name: str = ""
    collide: bool = True
    visible: bool = True
    covered: bool = False
    """Splats give its colour: rays and bodies meet it, depth and labels come from it, and what is seen are the splats before
    it, on it and up to 0.2 m behind it; where they do not cover, its own colour. If it is not `visible`, it has no colour of
    its own and hides nothing: what is seen in its place is what splats, looks, things and the sky behind it show."""
    carries: str = field(default="", metadata=LATER)
    """Landmark whose beacons it bears ("Gate10"), which it never hides: the tube of a gate, in whose middle they are set, and
    not the posts on which it stands; empty: it hides every beacon behind it."""
    shadow: Literal["own", "none", "only"] = field(default="own", metadata=LATER)
    """What it hides from lamps and the sun: what it is; nothing (grass, litter); or it is a shadow alone, which no eye sees: a
    coarse shape in the place of one that casts none. Qualities up to standard follow it; else everything seen casts its own."""
    footprint: tuple[float, float] = field(default=(0.0, 0.0), metadata=LATER)
    """Level of detail: colours show it where a pixel covers from the first to less than the second width at its place [m]; a
    second of 0: without end. Of a thing and its coarser kin one is shown, by distance and by the image's resolution."""
    attached: str = field(default="", metadata=LATER)
    """Of a look: name of the actor with which it moves, as its parts do, by the joint of its name where there is one; its
    pose is in the actor's frame at rest. Empty: it stands in the world."""


@dataclass(frozen=True)
class Waypoint:
    """Pose of a scripted actor at a time."""

    time: float
    """[s]"""
    position: Vector3
    attitude: Quaternion = IDENTITY


@dataclass(frozen=True)
class Actor:
    """Something that moves: its parts move as one rigid body, or each by its own track (a person's limbs)."""

    name: str
    parts: tuple[Instance, ...]
    """In the actor's frame at rest."""
    motion: Literal["scripted", "velocity", "external"] = "external"
    """scripted: follows `path`; velocity: integrates `velocity` [m/s], `rate` [rad/s], world; external: posed by the user."""
    position: Vector3 = (0.0, 0.0, 0.0)
    attitude: Quaternion = IDENTITY
    path: tuple[Waypoint, ...] = ()
    """Linear in position, spherical-linear in attitude; held at both ends, or repeated."""
    repeat: bool = False
    velocity: Vector3 = (0.0, 0.0, 0.0)
    rate: Vector3 = (0.0, 0.0, 0.0)
    skeleton: str = ""
    """Name in the scene's skeletons; its joints move the parts. Empty: rigid."""
    animation: str = ""
    """Clip of the skeleton that plays along; empty: the rest pose."""


@dataclass(frozen=True)
class Sun:
    """Light from infinity."""

    direction: Vector3
    """Towards which the light travels, world, unit length."""
    color: Color = (1.0, 0.96, 0.9)
    irradiance: float = 3.0
    """On a surface that faces it, in units in which a white diffuse surface under 3.14 has radiance 1."""


@dataclass(frozen=True)
class PointLight:
    """Light from a point, falling with the square of the distance."""

    position: Vector3
    color: Color = (1.0, 1.0, 1.0)
    intensity: float = 10.0
    """Irradiance at 1 m, in the unit of `Sun.irradiance`."""
    range: float = 0.0
    """Fades to nothing at this distance [m]; 0: without limit."""
    attached: str = ""
    """Name of the actor in whose frame the position is; empty: world."""
    radius: Annotated[float, Bound(0.0, 100.0, "m")] = field(default=0.0, metadata=LATER)
    """Of the lamp, as a disc that faces what it lights [m]: how soft its shadows are, where they can be."""
    from_dusk: bool = field(default=False, metadata=LATER)
    """Burns only under a sky by daylight whose sun stands low (`lights.DUSK`), as street lamps do."""


@dataclass(frozen=True)
class SpotLight:
    """A point light within a cone."""

    position: Vector3
    direction: Vector3
    inner_angle: float = 0.3
    """Half angle of full intensity [rad]."""
    outer_angle: float = 0.5
    """Half angle where it ends [rad]."""
    color: Color = (1.0, 1.0, 1.0)
    intensity: float = 20.0
    range: float = 0.0
    attached: str = ""
    radius: Annotated[float, Bound(0.0, 100.0, "m")] = field(default=0.0, metadata=LATER)
    from_dusk: bool = field(default=False, metadata=LATER)


Light = Sun | PointLight | SpotLight


@dataclass(frozen=True)
class Sky:
    """What a ray sees that hits nothing, and the ambient light: a vertical gradient, linear radiance, or the sky by daylight.

    Raises:
        AirworthyError: A number of the daylight is out of range.
    """

    zenith: Color = (0.25, 0.45, 0.85)
    """Of the gradient alone, as `horizon`."""
    horizon: Color = (0.75, 0.82, 0.9)
    ground: Color = (0.3, 0.28, 0.26)
    """Radiance below the horizon; of daylight the share of light that the ground sends back."""
    intensity: Annotated[float, Bound(0.0)] = 1.0
    """Times which it shines."""
    model: Literal["gradient", "daylight"] = field(default="gradient", metadata=LATER)
    """daylight: computed from the numbers below (`scenes.sky`), day and night; its sun is `scenes.sky.sky_sun`."""
    elevation: Annotated[float, Bound(-math.pi / 2, math.pi / 2, "rad")] = field(default=0.8, metadata=LATER)
    """Of the sun above the horizon [rad]; below 0: dusk and night."""
    azimuth: Annotated[float, Bound(-2.0 * math.pi, 2.0 * math.pi, "rad")] = field(default=2.5, metadata=LATER)
    """Of the sun, counter-clockwise from world x [rad]."""
    turbidity: Annotated[float, Bound(1.0, 10.0)] = field(default=2.5, metadata=LATER)
    """What the air takes of the light over what its molecules alone take: 2 very clear, 6 hazy."""
    cover: Annotated[float, SHARE] = field(default=0.0, metadata=LATER)
    """Share of thick, even cloud: 0 clear, 1 the standard overcast sky of the CIE, under which there is no sun."""
    night: Annotated[float, Bound(0.0, 1e3, "cd/m2")] = field(default=2e-4, metadata=LATER)
    """Luminance that the sky never falls below [cd/m2]: 2e-4 of stars and airglow far from towns, 0.02 over a town."""
    cumulus: Annotated[float, SHARE] = field(default=0.0, metadata=LATER)
    """Share of a daylight sky that heaps of cloud take (`scenes.sky.clouds`)."""
    cirrus: Annotated[float, SHARE] = field(default=0.0, metadata=LATER)
    """How much of it wisps of ice take, far above them."""
    cloud_base: Annotated[float, Bound(100.0, 1e4, "m")] = field(default=1400.0, metadata=LATER)
    """Height of the heaps' flat base [m]."""
    wind: Annotated[tuple[float, float], Bound(-100.0, 100.0, "m/s")] = field(default=(6.0, 2.5), metadata=LATER)
    """That moves the clouds, world x and y [m/s]: they are seen as they stand at the environment's time."""
    drift: Annotated[tuple[float, float], Bound(-1e6, 1e6, "m")] = field(default=(0.0, 0.0), metadata=LATER)
    """How far they have been moved at time 0 [m]: which part of the endless pattern is overhead."""
    stars: Annotated[float, SHARE] = field(default=0.0, metadata=LATER)
    """Of a daylight sky, seen at night: share of their light that the air lets through."""
    moon_elevation: Annotated[float, Bound(-math.pi / 2, math.pi / 2, "rad")] = field(default=-0.5, metadata=LATER)
    """Of the moon above the horizon [rad]; below 0: there is none. Its phase follows from where the sun stands."""
    moon_azimuth: Annotated[float, Bound(-2.0 * math.pi, 2.0 * math.pi, "rad")] = field(default=0.0, metadata=LATER)
    """Counter-clockwise from world x [rad]."""

    def __post_init__(self) -> None:
        check_fields(self, "Sky.")


@dataclass(frozen=True)
class Haze:
    """Haze, fog or dust between the eye and what it sees, denser near the ground; off by default.

    Raises:
        AirworthyError: A number is out of range.
    """

    density: Annotated[float, Bound(0.0, 1e3, "1/m")] = 0.0
    """Share of the light that a metre takes, at `base` [1/m]: 3.912 over the visibility, at which 2 % of a contrast are left
    (Koschmieder, 1924); 0: none."""
    height: Annotated[float, Bound(0.0, 1e6, "m")] = 200.0
    """Over which it thins out to 1/e [m]; 0: as dense everywhere."""
    base: Annotated[float, Bound(-1e6, 1e6, "m")] = 0.0
    """World z at which it has its density [m]."""
    color: Annotated[Color, SHARE] = (1.0, 1.0, 1.0)
    """Share of what it takes that it sends on: 1 of droplets, brown of dust."""
    asymmetry: Annotated[float, Bound(0.0, 0.95)] = 0.7
    """Mean cosine of the angle by which it turns light: how far it glows around the sun."""

    def __post_init__(self) -> None:
        check_fields(self, "Haze.")


@dataclass(frozen=True)
class Rain:
    """Falling rain and what it has left on the ground; none by default.

    Raises:
        AirworthyError: A number is out of range.
    """

    rate: Annotated[float, Bound(0.0, 300.0, "mm/h")] = 0.0
    """Of what falls now [mm/h]: 2 light, 10 heavy, 50 a downpour. It takes part of the sight, ruffles puddles, and draws
    streaks where a picture is made."""
    wetness: Annotated[float, SHARE] = 0.0
    """Of what faces the sky: wet ground is darker and smoother."""
    puddles: Annotated[float, SHARE] = 0.0
    """About what share of level ground stands under water."""

    def __post_init__(self) -> None:
        check_fields(self, "Rain.")


@dataclass(frozen=True)
class Snow:
    """Snow that lies on what faces the sky and is not sheltered from above; none by default. Colours alone show it.

    Raises:
        AirworthyError: The cover is out of range.
    """

    cover: Annotated[float, SHARE] = 0.0
    """0 none, 0.3 patches, 1 everything level and half of what is as steep as a roof (`scenes.sky.snow`)."""

    def __post_init__(self) -> None:
        check_fields(self, "Snow.")


@dataclass(frozen=True)
class Pose:
    """A place to be at, and a heading."""

    position: Vector3
    yaw: float = 0.0
    """[rad], counter-clockwise from world x."""


@dataclass(frozen=True)
class Region:
    """An axis-aligned box, world [m]."""

    lower: Vector3
    upper: Vector3


@dataclass(frozen=True)
class GateFrame:
    """A gate by the corners of its opening, in the order of its markers, which need not go around it."""

    name: str
    corners: tuple[Vector3, Vector3, Vector3, Vector3]
    """World [m]."""
    direction: Vector3 | None = field(default=None, metadata=LATER)
    """Unit normal, world, along which it is to be flown through; None: not stated, as in files of before."""
    pivot: tuple[float, float] | None = field(default=None, metadata=LATER)
    """x and y, world [m], of the vertical axis about which a race turns it; None: the axis through its center."""

    @property
    def center(self) -> Vector3:
        """Mean of the corners, world [m]."""
        x, y, z = (sum(axis) / 4.0 for axis in zip(*self.corners, strict=True))
        return (x, y, z)

    @property
    def axes(self) -> tuple[Vector3, Vector3, Vector3]:
        """Unit vectors, world: through the opening (`direction` where it is stated, else the normal whose largest part is
        positive), to the left and upwards as seen by who flies so; of a level opening, left is along world y.
        """
        through = self.direction or _positive(_normal(self.corners))
        upright = abs(through[2]) < 0.99
        left = _unit(_cross((0.0, 0.0, 1.0), through)) if upright else _unit(_cross(_cross(through, (0.0, 1.0, 0.0)), through))
        return through, left, _cross(through, left)

    @property
    def opening(self) -> tuple[float, float]:
        """Half width and half height [m]: half the extent of the corners to the left and upwards (`axes`).

        By extents and never by the order of the corners: markers of the AlphaPilot race go around some gates and row by row
        on others (spec/race 14).
        """
        _, left, up = self.axes
        across, above = ([_dot(corner, axis) for corner in self.corners] for axis in (left, up))
        return 0.5 * (max(across) - min(across)), 0.5 * (max(above) - min(above))


def _normal(corners: tuple[Vector3, ...]) -> Vector3:
    """Return the unit normal of the plane through the first three corners; no three of a gate lie on one line."""
    return _unit(_cross(_minus(corners[1], corners[0]), _minus(corners[2], corners[0])))


def _positive(axis: Vector3) -> Vector3:
    largest = max(axis, key=abs)
    return axis if largest > 0.0 else (-axis[0], -axis[1], -axis[2])


def _minus(a: Vector3, b: Vector3) -> Vector3:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def _dot(a: Vector3, b: Vector3) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Vector3, b: Vector3) -> Vector3:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def _unit(a: Vector3) -> Vector3:
    # A gate whose corners lie on one line has no normal; a zero vector would make all that follows NaN.
    length = math.sqrt(_dot(a, a)) or 1.0
    return (a[0] / length, a[1] / length, a[2] / length)


@dataclass(frozen=True)
class Beacon:
    """An infrared marker."""

    landmark: str
    """Of which it is a part ("Gate10")."""
    marker: str
    """Its id there ("3")."""
    position: Vector3
    """World [m], or in the frame of `attached`."""
    attached: str = ""
    """Name of an actor; empty: world."""


@dataclass(frozen=True)
class SplatPlacement:
    """A cloud of Gaussian splats, standing in the scene or riding on an actor."""

    cloud: str
    """Name in the scene's clouds."""
    position: Vector3 = (0.0, 0.0, 0.0)
    """World [m], or in the frame of `attached`."""
    attitude: Quaternion = IDENTITY
    scale: float = 1.0
    """Uniform, > 0: metres per unit of the cloud."""
    attached: str = ""
    """Name of the actor with which it moves, as one rigid body; empty: it stands in the world."""
    name: str = ""


@dataclass(frozen=True)
class Scene:
    """A place."""

    name: str
    shapes: dict[str, Shape] = field(default_factory=dict)
    materials: dict[str, Material] = field(default_factory=dict)
    textures: dict[str, Texture] = field(default_factory=dict)
    instances: tuple[Instance, ...] = ()
    actors: tuple[Actor, ...] = ()
    lights: tuple[Light, ...] = (Sun((-0.4, 0.3, -0.866)),)
    sky: Sky = Sky()
    bounds: Region = Region((-50.0, -50.0, 0.0), (50.0, 50.0, 30.0))
    """Leaving it is out of bounds."""
    start: Pose | None = None
    goal: Pose | None = None
    spawn: tuple[Region, ...] = ()
    """Where flights may begin."""
    gates: tuple[GateFrame, ...] = ()
    beacons: tuple[Beacon, ...] = ()
    courses: tuple[str, ...] = ()
    """Names of courses made for this place."""
    skeletons: dict[str, Skeleton] = field(default_factory=dict)
    """Joints, bound meshes and clips of actors (`scenes.formats.Skeleton`)."""
    semantics: dict[str, int] = field(default_factory=dict)
    """Class name -> number; names that are missing here take the numbers of `DEFAULT_SEMANTICS`, then rise from 200."""
    clouds: dict[str, Splats] = field(default_factory=dict)
    """Gaussian splats as they were read: z up, in the frame of their file, metres unless the placement scales them."""
    splats: tuple[SplatPlacement, ...] = ()
    """Clouds that are seen, and where."""
    description: str = ""
    source: str = ""
    """Where it comes from, and its licence."""
    facts: dict[str, float] = field(default_factory=dict)
    """Numbers a generator states about its work (counts, densities, widths, difficulty)."""
    carved: CarvedSpace | None = field(default=None, metadata=LATER)
    """Of a captured place: which of its space is known to be free, which holds a surface, and which is unknown."""
    haze: Haze = field(default=Haze(), metadata=LATER)
    rain: Rain = field(default=Rain(), metadata=LATER)
    snow: Snow = field(default=Snow(), metadata=LATER)
    looks: tuple[Instance, ...] = field(default=(), metadata=LATER)
    """Things that only colours show: no depth, label, body, map or beacon knows of them. They stand where what is hit is not
    shown (`covered` and not `visible`), or beside it: leaves, grass, ornament."""


DEFAULT_SEMANTICS: dict[str, int] = {
    "thin": 1,
    "tree": 2,
    "object": 3,
    "ground": 4,
    "building": 5,
    "person": 6,
    "gate": 7,
    "vehicle": 8,
    "front_wall": 9,
    "back_wall": 10,
    "left_wall": 11,
    "right_wall": 12,
    "bottom_wall": 13,
    "top_wall": 14,
    "wall": 15,
    "ladder": 16,
    "monitor": 17,
    "pillar": 18,
    "furniture": 19,
    "panel": 20,
    "cylinder": 21,
    "slab": 22,
    "voxel": 23,
}
"""Numbers of class names: 1-3, 9-14 and 20 as in Aerial Gym (spec/aerial_gym 7.1); the others ours."""
NO_HIT = -2
"""Semantic and instance number of a ray that hits nothing (spec/aerial_gym 7.1)."""

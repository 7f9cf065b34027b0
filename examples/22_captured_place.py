"""A room from a film, a course along the walk through it, flown by the expert and by a policy that learnt it there.

The film is one of a drawn hall, by a hand that shakes; name yours in `capture_video` instead. Every step is kept below
runs/22_captured_place, and a run that was stopped goes on. It takes a quarter of an hour of two cores.
"""

from pathlib import Path

import airworthy as aw
from airworthy.capture import CaptureVideoOptions, FilmOptions, capture_video, read_poses, render_film
from airworthy.tasks import CourseRoom, WalkOptions, walk_course
from airworthy.trajectories import Limits, write_course

out = Path("runs/22_captured_place")
film, room, course = out / "film", out / "room", out / "walk.json"
if not (film / "truth.json").exists():
    render_film(aw.scene("mid_gate"), film, FilmOptions(seconds=60, rate=1, width=640, height=360))
made = capture_video(film, room, CaptureVideoOptions(quick=True)).summary
print(f"{made['registered']} of {made['pictures']} pictures have a pose; PSNR of held-out ones {made['psnr_db']:.1f} dB")
print(f"{made['place']['space_m3']['free']:.0f} m3 are known to be free")
place = str(room / "place")
if not course.exists():
    fits = CourseRoom(aw.scene(place), aw.vehicle("carl"))
    cameras, limits = read_poses(room).position, Limits(speed=1.5)
    try:
        walk = walk_course(cameras, fits, WalkOptions(clear=0.25), limits)
    except aw.AirworthyError as error:  # reconstructions of one film differ, and so does what is known to be free
        print(f"{error} Once more with 0.2 m.")
        walk = walk_course(cameras, fits, WalkOptions(clear=0.2), limits)
    write_course(walk.draft.course(), course)
path = aw.course(str(course)).trajectory()
print(f"{course}: {path.length():.1f} m in {path.duration:.1f} s")

where = {"scene": place, "course": str(course), "family": ("rigid",), "conditions": ("baseline",)}
flown = aw.evaluate("mpc", **where, out=out / "expert").frame().to_pylist()
print(f"expert: {sum(row['outcome'].startswith('success') for row in flown)} of {len(flown)} flights")
learnt = aw.train("visuomotor", scene=(place,), course=(str(course),), minutes=5, rounds=3, out=out / "policy")
for row in learnt.summary["conditions"]:
    print(f"policy, {row['condition']}: {row['successes']} of {row['flights']} flights; see {learnt.report()}")

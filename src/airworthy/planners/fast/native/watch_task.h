// Walks along each plan from now on and says where it first meets something: every 0.02 s, up to a distance from where it is now.
for (int which = worker; which < count; which += workers) {
  Watch& w = ((Watch*)asked.data)[which];
  const Known known = {(const Window*)windows.data + w.window};
  const double duration = w.knots[w.count] - w.knots[3];
  double here[3], at[3];
  Bspline::at(w.control, w.knots, w.count, 3, w.knots[3] + w.now, here);
  double range = 0.0;
  w.hit = -1.0;
  w.distance = 0.0;
  w.goal_near = known.near(w.goal, w.goal_least) ? 1 : 0;
  for (int k = 1; range < w.ahead && w.now + 0.02 * k < duration; ++k) {
    Bspline::at(w.control, w.knots, w.count, 3, w.knots[3] + w.now + 0.02 * k, at);
    // Nearer than one cell to something, as distances between middles of cells go, is in it.
    if (known.taken(at)) {
      w.hit = 0.02 * k;
      w.distance = range;
      break;
    }
    range = 0.0;
    for (int j = 0; j < 3; ++j) range += (at[j] - here[j]) * (at[j] - here[j]);
    range = ::sqrt(range);
  }
}

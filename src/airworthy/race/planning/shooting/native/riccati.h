  // The backward pass and the border's system: as newton.py. False where the programme is not convex.
  METHOD bool factor(double ridge) {
    double system[MM * MM], carried[NX * MM], ahead[NX * ZP], all[(NX + NU) * ZP], lean[(NX + NU) * MM];
    for (int i = 0; i < MM * MM; ++i) system[i] = w->border[i];
    double *value = w->value_curve + steps * NX * NX, *slope = w->value_slope + steps * NX * MM;
    for (int i = 0; i < NX * NX; ++i) value[i] = w->node_curve[steps * NX * NX + i];
    for (int i = 0; i < NX * MM; ++i) slope[i] = w->node_slope[steps * NX * MM + i];
    for (int i = 0; i < NX; ++i) value[i * NX + i] += ridge;
    for (int k = steps - 1; k >= 0; --k) {
      const int t = 1 + k / nodes;
      const double *by = w->slopes + k * NX * ZP, *defect = w->defect + k * NX, each = 1.0 / nodes;
      for (int i = 0; i < NX * MM; ++i) carried[i] = slope[i];
      for (int i = 0; i < NX; ++i) {
        double first = 0.0, second = 0.0;
        for (int j = 0; j < NX; ++j) {
          first += value[i * NX + j] * defect[j];
          second += value[i * NX + j] * by[j * ZP + NZ - 1];
        }
        carried[i * MM] += first;
        carried[i * MM + t] += second * each;
      }
      // c' P c + c' p + p' c is twice the symmetric part of c' (P c / 2 + p): only the constant and this leg's time move states.
      double first[MM], second[MM];
      Step::zero(first, MM);
      Step::zero(second, MM);
      for (int i = 0; i < NX; ++i) {
        const double constant = 0.5 * defect[i], time = 0.5 * by[i * ZP + NZ - 1] * each;
        for (int c = 0; c < MM; ++c) {
          const double both = carried[i * MM + c] + slope[i * MM + c];
          first[c] += constant * both;
          second[c] += time * both;
        }
      }
      for (int c = 0; c < MM; ++c) {
        system[c] += first[c];
        system[c * MM] += first[c];
        system[t * MM + c] += second[c];
        system[c * MM + t] += second[c];
      }
      for (int i = 0; i < NX; ++i) {
        double row[ZP];
        Step::zero(row, ZP);
        for (int j = 0; j < NX; ++j) Step::add(row, value[i * NX + j], by + j * ZP);
        for (int j = 0; j < ZP; ++j) ahead[i * ZP + j] = row[j];
      }
      for (int a = 0; a < NX + NU; ++a) {
        double row[ZP], side[MM];
        const double* from = a < NX ? w->node_slope + (k * NX + a) * MM : w->input_slope + (k * NU + a - NX) * MM;
        for (int j = 0; j < ZP; ++j) row[j] = w->curves[(k * NZ + a) * ZP + j];
        for (int c = 0; c < MM; ++c) side[c] = from[c];
        for (int i = 0; i < NX; ++i) {
          const double share = by[i * ZP + a];
          Step::add(row, share, ahead + i * ZP);
          for (int c = 0; c < MM; ++c) side[c] += share * carried[i * MM + c];
        }
        for (int j = 0; j < ZP; ++j) all[a * ZP + j] = row[j];
        for (int c = 0; c < MM; ++c) lean[a * MM + c] = side[c];
      }
      double lower[NU * NU], *gain = w->gain + k * NU * NX, *offset = w->offset + k * NU * MM;
      for (int i = 0; i < NU; ++i) all[(NX + i) * ZP + NX + i] += ridge;
      for (int i = 0; i < NU; ++i)
        for (int j = 0; j <= i; ++j) {
          double sum = all[(NX + i) * ZP + NX + j];
          for (int o = 0; o < j; ++o) sum -= lower[i * NU + o] * lower[j * NU + o];
          if (i == j && !(sum > 0.0)) return false;
          lower[i * NU + j] = i == j ? sqrt(sum) : sum / lower[j * NU + j];
        }
      for (int i = 0; i < NU; ++i) {
        for (int j = 0; j < NX; ++j) gain[i * NX + j] = -all[(NX + i) * ZP + j];
        for (int c = 0; c < MM; ++c) offset[i * MM + c] = -lean[(NX + i) * MM + c];
      }
      solve(lower, gain, NX);
      solve(lower, offset, MM);
      for (int c = 0; c < MM; ++c)
        for (int i = 0; i < NU; ++i)
          for (int d = 0; d < MM; ++d) system[c * MM + d] += lean[(NX + i) * MM + c] * offset[i * MM + d];
      if (k == 0) break;
      value -= NX * NX;
      slope -= NX * MM;
      for (int i = 0; i < NX; ++i) {
        for (int c = 0; c < MM; ++c) slope[i * MM + c] = lean[i * MM + c];
        for (int j = 0; j < NX; ++j) value[i * NX + j] = all[i * ZP + j] + w->node_curve[(k * NX + i) * NX + j];
        for (int o = 0; o < NU; ++o) {
          const double share = all[(NX + o) * ZP + i];
          for (int c = 0; c < MM; ++c) slope[i * MM + c] += share * offset[o * MM + c];
          for (int j = 0; j < NX; ++j) value[i * NX + j] += share * gain[o * NX + j];
        }
      }
      for (int i = 0; i < NX; ++i) {
        for (int j = 0; j < i; ++j) value[i * NX + j] = value[j * NX + i] = 0.5 * (value[i * NX + j] + value[j * NX + i]);
        value[i * NX + i] += ridge;
      }
    }
    return border(system, ridge);
  }
  static INLINE void solve(const double* lower, double* right, int count) {
    for (int i = 0; i < NU; ++i) {
      for (int o = 0; o < i; ++o)
        for (int c = 0; c < count; ++c) right[i * count + c] -= lower[i * NU + o] * right[o * count + c];
      for (int c = 0; c < count; ++c) right[i * count + c] /= lower[i * NU + i];
    }
    for (int i = NU - 1; i >= 0; --i) {
      for (int o = i + 1; o < NU; ++o)
        for (int c = 0; c < count; ++c) right[i * count + c] -= lower[o * NU + i] * right[o * count + c];
      for (int c = 0; c < count; ++c) right[i * count + c] /= lower[i * NU + i];
    }
  }
  // L D L' with the looks first: their pivots are negative and the others positive where the step is one to a minimum.
  METHOD bool border(double* s, double ridge) {
    const int m = columns - 1, free = 2 * legs;
    int seat[MM];
    double lower[MM * MM], pivot[MM], change[MM];
    for (int i = 0; i < m; ++i) seat[i] = i < looks ? 1 + free + i : 1 + i - looks;
    for (int i = 0; i < m; ++i) {
      change[i] = -s[seat[i] * MM];
      for (int j = 0; j <= i; ++j) {
        double sum = s[seat[i] * MM + seat[j]] + (i == j && i >= looks ? ridge : 0.0);
        for (int o = 0; o < j; ++o) sum -= lower[i * MM + o] * lower[j * MM + o] * pivot[o];
        if (j < i) {
          lower[i * MM + j] = sum / pivot[j];
          change[i] -= lower[i * MM + j] * change[j];
        } else {
          pivot[i] = sum;
          if (!(i < looks ? sum < 0.0 : sum > 0.0)) return false;
        }
      }
    }
    for (int i = m - 1; i >= 0; --i) {
      change[i] /= pivot[i];
      for (int o = i + 1; o < m; ++o) change[i] -= lower[o * MM + i] * change[o];
    }
    for (int c = 0; c < MM; ++c) w->theta[c] = 0.0;
    w->theta[0] = 1.0;
    for (int i = 0; i < m; ++i) w->theta[seat[i]] = change[i];
    return true;
  }
  // The forward pass, then slacks and multipliers.
  METHOD void direct() {
    Step::zero(w->dx, NX);
    for (int k = 0; k < steps; ++k) {
      const int t = 1 + k / nodes;
      const double *x = w->dx + k * NX, *by = w->slopes + k * NX * ZP, time = w->theta[t] / nodes;
      double *u = w->du + k * NU, *next = w->dx + (k + 1) * NX, *costate = w->dcostate + (k + 1) * NX;
      for (int i = 0; i < NU; ++i) {
        double sum = 0.0;
        for (int j = 0; j < NX; ++j) sum += w->gain[(k * NU + i) * NX + j] * x[j];
        for (int c = 0; c < columns; ++c) sum += w->offset[(k * NU + i) * MM + c] * w->theta[c];
        u[i] = sum;
      }
      for (int i = 0; i < NX; ++i) {
        double sum = w->defect[k * NX + i] + by[i * ZP + NZ - 1] * time;
        for (int j = 0; j < NX; ++j) sum += by[i * ZP + j] * x[j];
        for (int j = 0; j < NU; ++j) sum += by[i * ZP + NX + j] * u[j];
        next[i] = sum;
      }
      for (int i = 0; i < NX; ++i) {
        double sum = -w->costate[(k + 1) * NX + i];
        for (int j = 0; j < NX; ++j) sum += w->value_curve[((k + 1) * NX + i) * NX + j] * next[j];
        for (int c = 0; c < columns; ++c) sum += w->value_slope[((k + 1) * NX + i) * MM + c] * w->theta[c];
        costate[i] = sum;
      }
    }
    const double *psi = w->theta + 1 + 2 * legs, price = g->price[1];
    for (int q = 0; q < looks; ++q) {
      const double lack = w->slack[kind[4] + q], y = w->dual[kind[5] + q];
      w->dlack[q] = (mu - lack * (price - y) + lack * psi[q]) / w->dual[kind[4] + q];
    }
    linear(w->dx, w->du, w->theta + 1, w->theta + 1 + legs, w->dlack, w->dslack);
    for (int r = 0; r < kind[5]; ++r) {
      const double s = w->slack[r], y = w->dual[r];
      w->dslack[r] += w->value[r] - s;
      w->ddual[r] = mu / s - y - y / s * w->dslack[r];
    }
    for (int q = 0; q < looks; ++q) {
      const int r = kind[5] + q, z = kind[4] + q;
      w->ddual[z] = price - w->dual[r] - w->dual[z] - psi[q];
      w->dslack[r] = mu / w->dual[r] - w->slack[r] - w->slack[r] / w->dual[r] * psi[q];
      w->ddual[r] = psi[q];
    }
    for (int l = 0; l < legs; ++l) {
      const double *n = g->plane + 4 * l, *d = w->dx + (l + 1) * nodes * NX;
      w->dheld[l] = (plane(l, f->x) + n[0] * d[0] + n[1] * d[1] + n[2] * d[2]) / SOFT_EQUALITY;
    }
  }

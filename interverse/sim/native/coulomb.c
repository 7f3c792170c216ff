// Coulomb friction for MuJoCo: an engine plugin that solves sliding contacts again.
//
// MuJoCo's friction is a projection on a convex cone, by which a sliding contact gains normal force
// from its sliding speed and lifts off. Here the normal force follows from the normal row alone,
// which is De Saxce's correction, and friction opposes the sliding. With r = J x - aref at the
// accelerations x, and R, D = 1/R, mu and aref MuJoCo's:
//
//   f_n = max(0, -D_n r_n);   f_t = -D_t r_t where |f_t / mu| <= f_n, else it slides:
//   f_t / mu has the size f_n and the direction opposite to mu r_t;   M x = qfrc_smooth + J' f.
//
// The solver is Newton's method on f = P(f - rho (r + R f)), P the projection on the cone's section
// at the present normal force (Alart and Curnier). In each step every constraint is linear,
// f = -G r, so a step is one linear system of the size of x. A line search on the distance
// |f - P(...)| guards it; where that fails, Gauss-Seidel sweeps over the constraints go on. Both are
// deterministic, start from MuJoCo's own solution and stop when the distance is small.
//
// The plugin is a sensor of the acceleration stage: it runs after MuJoCo's solve, in models that
// have the sensor and in no others, and replaces the accelerations and constraint forces of islands
// in which a contact slides. It reads: Newton steps, islands not solved to tolerance, the largest
// relative distance left. All memory is on mjData's stack, so threads share nothing.

#include <math.h>
#include <stddef.h>
#include <string.h>

#include <mujoco/mujoco.h>

enum { MAX_STEPS = 60, HALVINGS = 4, MAX_ROUNDS = 10, SWEEPS = 40, WIDEST = 6, READINGS = 3 };
static const mjtNum TOLERANCE = 1e-8;  // of the distance, relative to the reference accelerations
static const mjtNum DECREASE = 1e-3;   // least relative decrease that a full step must bring
static const mjtNum EDGE = 1e-8;       // a contact this near the cone's edge slides

static struct {  // functions of the MuJoCo library that this process has loaded
  void (*mark)(mjData*);
  void (*release)(mjData*);
  mjtNum* (*numbers)(mjData*, size_t);
  int* (*integers)(mjData*, size_t);
  int (*sparse)(const mjModel*);
  void (*by_jacobian_transposed)(const mjModel*, const mjData*, mjtNum*, const mjtNum*);
  void (*by_inverse_inertia)(const mjModel*, mjData*, mjtNum*, const mjtNum*, int);
  void (*sense)(const mjModel*, mjData*);
} mujoco;

typedef struct {          // an iterate: three arrays in one piece of memory
  mjtNum *x, *r, *f;      // accelerations (n), J x - aref and forces (rows)
} Point;

typedef struct {          // the constraints of one island, dense
  const mjModel* m;
  mjData* d;
  int n, rows;            // degrees of freedom, constraint rows
  const int *dof, *row;   // their numbers in mjData
  mjtNum *M, *J, *aref;   // inertia (n x n), Jacobian (rows x n), reference accelerations
  int *columns, *count;   // degrees of freedom that a row acts on (n a row), and how many
  mjtNum *rho;            // step sizes: of the normal in a contact's first row, of friction in the next
  mjtNum *H, *G;          // linear system (n x n), slopes (WIDEST numbers a row)
  Point now, next, last;
} Island;

//---------------------------------------- gathering -----------------------------------------------

static void gather_inertia(Island* p, const int* place) {
  const mjModel* m = p->m;
  memset(p->M, 0, sizeof(mjtNum) * p->n * p->n);
  for (int i = 0; i < p->n; i++) {
    int start = m->M_rowadr[p->dof[i]], end = start + m->M_rownnz[p->dof[i]];
    for (int k = start; k < end; k++) {
      int j = place[m->M_colind[k]];
      p->M[i * p->n + j] = p->M[j * p->n + i] = p->d->M[k];
    }
  }
}

static void gather_jacobian(Island* p, const int* place) {
  const mjData* d = p->d;
  int sparse = mujoco.sparse(p->m);
  memset(p->J, 0, sizeof(mjtNum) * p->rows * p->n);
  for (int i = 0; i < p->rows; i++) {
    int row = p->row[i];
    mjtNum* to = p->J + i * p->n;
    if (sparse) {
      int start = d->efc_J_rowadr[row], end = start + d->efc_J_rownnz[row];
      for (int k = start; k < end; k++) to[place[d->efc_J_colind[k]]] = d->efc_J[k];
    } else {
      for (int j = 0; j < p->n; j++) to[j] = d->efc_J[row * p->m->nv + p->dof[j]];
    }
  }
}

// the contact that a row begins or belongs to, NULL if it is none with friction
static const mjContact* contact_of(const mjData* d, int row) {
  return d->efc_type[row] == mjCNSTR_CONTACT_ELLIPTIC ? d->contact + d->efc_id[row] : NULL;
}

static int width(const Island* p, int i) {
  const mjContact* c = contact_of(p->d, p->row[i]);
  return c ? c->dim : 1;
}

// finds the degrees of freedom that the rows of each constraint act on
static void find_columns(Island* p) {
  for (int i = 0, dim; i < p->rows; i += dim) {
    int* columns = p->columns + i * p->n;
    dim = width(p, i);
    p->count[i] = 0;
    for (int a = 0; a < p->n; a++) {
      int any = 0;
      for (int j = 0; j < dim; j++) any |= p->J[(i + j) * p->n + a] != 0;
      if (any) columns[p->count[i]++] = a;
    }
    for (int j = 1; j < dim; j++) {
      p->count[i + j] = p->count[i];
      memcpy(columns + j * p->n, columns, sizeof(int) * p->count[i]);
    }
  }
}

// step sizes from MuJoCo's estimate of a row's response to its own force
static void estimate_steps(Island* p) {
  const mjtNum* response = p->d->efc_diagA;
  for (int i = 0, dim; i < p->rows; i += dim) {
    const mjContact* c = contact_of(p->d, p->row[i]);
    mjtNum most = 0;
    dim = width(p, i);
    for (int j = 1; j < dim; j++) {
      mjtNum one = c->friction[j - 1] * c->friction[j - 1] * response[p->row[i] + j];
      most = one > most ? one : most;
    }
    p->rho[i] = 1 / response[p->row[i]];
    if (dim > 1) p->rho[i + 1] = 1 / most;
  }
}

//----------------------------------------- forces -------------------------------------------------

// friction of a contact with normal force `normal`: see `respond`
static void respond_friction(const Island* p, int i, const mjContact* c, const mjtNum* r,
                             const mjtNum* f, mjtNum* to, mjtNum* G) {
  int dim = c->dim;
  mjtNum rho = p->rho[i + 1], soft = c->mu * c->mu * p->d->efc_R[p->row[i]];
  mjtNum z[WIDEST], size = 0;
  for (int j = 1; j < dim; j++) {
    mjtNum mu = c->friction[j - 1];
    z[j] = (1 - rho * soft) * f[j] / mu - rho * mu * r[j];
    size += z[j] * z[j];
  }
  size = sqrt(size);
  int sticks = size <= to[0];
  mjtNum share = sticks ? 1 : to[0] / size;
  mjtNum stiffness = share * rho / (1 - share * (1 - rho * soft));
  for (int j = 1; j < dim; j++) {
    mjtNum mu = c->friction[j - 1];
    to[j] = mu * share * z[j];
    if (!G) continue;
    if (!sticks) G[j * dim] = mu * z[j] / size * G[0];
    for (int k = 1; k < dim; k++) {
      mjtNum across = (j == k) - (sticks ? 0 : z[j] * z[k] / (size * size));
      G[j * dim + k] = mu * stiffness * across * c->friction[k - 1];
    }
  }
}

// what the force f of the constraint at row i becomes at r; and the slope G (dim x dim) there, by
// which a Newton step has it follow r, f = -G r, unless G is NULL
static void respond(const Island* p, int i, const mjtNum* r, const mjtNum* f, mjtNum* to,
                    mjtNum* G) {
  const mjData* d = p->d;
  const mjContact* c = contact_of(d, p->row[i]);
  int row = p->row[i], dim = c ? c->dim : 1;
  memset(to, 0, sizeof(mjtNum) * dim);
  if (G) memset(G, 0, sizeof(mjtNum) * dim * dim);
  mjtNum z = f[0] - p->rho[i] * (r[0] + d->efc_R[row] * f[0]);
  if (z <= 0 && d->efc_type[row] != mjCNSTR_EQUALITY) return;
  to[0] = z;
  if (G) G[0] = d->efc_D[row];
  if (c && dim > 1) respond_friction(p, i, c, r, f, to, G);
}

static void find_r(const Island* p, const mjtNum* x, mjtNum* r, int from, int count) {
  for (int i = from; i < from + count; i++) {
    r[i] = -p->aref[i];
    const int* columns = p->columns + i * p->n;
    const mjtNum* J = p->J + i * p->n;
    for (int j = 0; j < p->count[i]; j++) r[i] += J[columns[j]] * x[columns[j]];
  }
}

// how far the forces are from what they become, as accelerations
static mjtNum distance(const Island* p) {
  mjtNum to[WIDEST], sum = 0;
  for (int i = 0, dim; i < p->rows; i += dim) {
    dim = width(p, i);
    respond(p, i, p->now.r + i, p->now.f + i, to, NULL);
    for (int j = 0; j < dim; j++) {
      mjtNum e = (p->now.f[i + j] - to[j]) * p->d->efc_diagA[p->row[i] + j];
      sum += e * e;
    }
  }
  return sqrt(sum);
}

//----------------------------------------- Newton -------------------------------------------------

// solves H b = b by elimination with row pivots; returns 0 if H is singular
static int eliminate(mjtNum* H, mjtNum* b, int n) {
  for (int k = 0; k < n; k++) {
    int pivot = k;
    for (int i = k + 1; i < n; i++) {
      if (fabs(H[i * n + k]) > fabs(H[pivot * n + k])) pivot = i;
    }
    if (fabs(H[pivot * n + k]) < mjMINVAL) return 0;
    for (int j = k; j < n && pivot != k; j++) {
      mjtNum other = H[k * n + j];
      H[k * n + j] = H[pivot * n + j];
      H[pivot * n + j] = other;
    }
    mjtNum other = b[k];
    b[k] = b[pivot];
    b[pivot] = other;
    for (int i = k + 1; i < n; i++) {
      mjtNum scale = H[i * n + k] / H[k * n + k];
      if (scale == 0) continue;
      for (int j = k + 1; j < n; j++) H[i * n + j] -= scale * H[k * n + j];
      b[i] -= scale * b[k];
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) b[i] -= H[i * n + j] * b[j];
    b[i] /= H[i * n + i];
  }
  return 1;
}

// adds J' G J to H and J' G aref to the right side, for the constraint at row i
static void add_slope(Island* p, int i, int dim, const mjtNum* G) {
  int n = p->n, count = p->count[i];
  const int* columns = p->columns + i * n;
  const mjtNum* J = p->J + i * n;
  if (G[0] == 0) return;  // it does not touch
  for (int a = 0; a < count; a++) {
    mjtNum* H = p->H + columns[a] * n;
    for (int k = 0; k < dim; k++) {
      mjtNum left = 0;
      for (int j = 0; j < dim; j++) left += J[j * n + columns[a]] * G[j * dim + k];
      if (left == 0) continue;
      p->next.x[columns[a]] += left * p->aref[i + k];
      for (int b = 0; b < count; b++) H[columns[b]] += left * J[k * n + columns[b]];
    }
  }
}

// sets `next` to where a full step goes; returns 0 if there is no step
static int newton_step(Island* p) {
  int n = p->n;
  mjtNum to[WIDEST];
  memcpy(p->H, p->M, sizeof(mjtNum) * n * n);
  for (int i = 0; i < n; i++) p->next.x[i] = p->d->qfrc_smooth[p->dof[i]];
  for (int i = 0, dim; i < p->rows; i += dim) {
    dim = width(p, i);
    respond(p, i, p->now.r + i, p->now.f + i, to, p->G + WIDEST * i);
    add_slope(p, i, dim, p->G + WIDEST * i);
  }
  if (!eliminate(p->H, p->next.x, n)) return 0;
  find_r(p, p->next.x, p->next.r, 0, p->rows);
  for (int i = 0, dim; i < p->rows; i += dim) {
    dim = width(p, i);
    for (int j = 0; j < dim; j++) {
      mjtNum force = 0;
      for (int k = 0; k < dim; k++) force -= p->G[WIDEST * i + j * dim + k] * p->next.r[i + k];
      p->next.f[i + j] = force;
    }
  }
  return 1;
}

// goes from `last` a share of the way to `next`; returns the distance there
static mjtNum go(Island* p, mjtNum share) {
  const mjtNum *from = p->last.x, *to = p->next.x;
  for (int i = 0; i < p->n + 2 * p->rows; i++) p->now.x[i] = from[i] + share * (to[i] - from[i]);
  return distance(p);
}

//----------------------------------------- sweeps -------------------------------------------------

// step sizes from the exact response, and that response: M^-1 J', (rows x n)
static void exact_steps(Island* p, mjtNum* response, mjtNum* whole) {
  int n = p->n, nv = p->m->nv;
  for (int i = 0; i < p->rows; i++) {
    memset(whole, 0, sizeof(mjtNum) * nv);
    for (int j = 0; j < n; j++) whole[p->dof[j]] = p->J[i * n + j];
    mujoco.by_inverse_inertia(p->m, p->d, whole + nv, whole, 1);
    for (int j = 0; j < n; j++) response[i * n + j] = whole[nv + p->dof[j]];
  }
  for (int i = 0, dim; i < p->rows; i += dim) {
    const mjContact* c = contact_of(p->d, p->row[i]);
    mjtNum friction = 0;
    dim = width(p, i);
    for (int j = 0; j < dim; j++) {
      mjtNum own = 0, mu = j ? c->friction[j - 1] : 1;
      for (int a = 0; a < n; a++) own += p->J[(i + j) * n + a] * response[(i + j) * n + a];
      if (j == 0) p->rho[i] = 1 / own;
      else friction += mu * mu * own;
    }
    if (dim > 1) p->rho[i + 1] = 1 / friction;
  }
}

// Gauss-Seidel: every constraint in turn takes the force it tends to; returns the distance left
static mjtNum sweep(Island* p, int times) {
  int n = p->n;
  mjtNum to[WIDEST];
  mujoco.mark(p->d);
  mjtNum* response = mujoco.numbers(p->d, p->rows * n + 2 * p->m->nv);
  exact_steps(p, response, response + p->rows * n);
  for (int k = 0; k < times; k++) {
    for (int i = 0, dim; i < p->rows; i += dim) {
      dim = width(p, i);
      find_r(p, p->now.x, p->now.r, i, dim);
      respond(p, i, p->now.r + i, p->now.f + i, to, NULL);
      for (int j = 0; j < dim; j++) {
        mjtNum change = to[j] - p->now.f[i + j];
        p->now.f[i + j] = to[j];
        for (int a = 0; a < n; a++) p->now.x[a] += response[(i + j) * n + a] * change;
      }
    }
  }
  find_r(p, p->now.x, p->now.r, 0, p->rows);
  mujoco.release(p->d);
  return distance(p);
}

//---------------------------------------- one island ----------------------------------------------

// brings `now` to the solution; returns the relative distance left
static mjtNum solve(Island* p, int* steps) {
  mjtNum scale = 1, error = distance(p);
  int rounds = 0;
  for (int i = 0; i < p->rows; i++) scale += fabs(p->aref[i]);
  while (error > TOLERANCE * scale && *steps < MAX_STEPS) {
    int halvings = HALVINGS + 1;
    mjtNum share = 1, found = error;
    ++*steps;
    memcpy(p->last.x, p->now.x, sizeof(mjtNum) * (p->n + 2 * p->rows));
    if (newton_step(p)) {
      for (halvings = 0; halvings <= HALVINGS; halvings++, share *= 0.5) {
        found = go(p, share);
        if (found < (1 - DECREASE * share) * error) break;
      }
    }
    if (halvings > HALVINGS) {
      if (++rounds > MAX_ROUNDS) break;
      go(p, 0);
      found = sweep(p, SWEEPS * rounds);
    }
    error = found;
  }
  return error / scale;
}

static Point point_at(mjtNum* memory, int n, int rows) {
  Point point = {memory, memory + n, memory + n + rows};
  return point;
}

// takes all arrays from the stack and fills them from mjData
static void set_up(Island* p, const int* place) {
  int n = p->n, rows = p->rows, vector = n + 2 * rows;
  mjtNum* memory = mujoco.numbers(p->d, 2 * n * n + rows * (n + 2 + WIDEST) + 3 * vector);
  p->M = memory;
  p->H = p->M + n * n;
  p->J = p->H + n * n;
  p->aref = p->J + rows * n;
  p->rho = p->aref + rows;
  p->G = p->rho + rows;
  p->now = point_at(p->G + WIDEST * rows, n, rows);
  p->next = point_at(p->now.x + vector, n, rows);
  p->last = point_at(p->next.x + vector, n, rows);
  gather_inertia(p, place);
  gather_jacobian(p, place);
  p->columns = mujoco.integers(p->d, rows * n);
  p->count = mujoco.integers(p->d, rows);
  find_columns(p);
  for (int i = 0; i < n; i++) p->now.x[i] = p->d->qacc[p->dof[i]];
  for (int i = 0; i < rows; i++) p->aref[i] = p->d->efc_aref[p->row[i]];
  for (int i = 0; i < rows; i++) p->now.f[i] = p->d->efc_force[p->row[i]];
  find_r(p, p->now.x, p->now.r, 0, rows);
  estimate_steps(p);
}

static void solve_island(const mjModel* m, mjData* d, int k, mjtNum* reading) {
  Island p = {m, d, d->island_nv[k], d->island_nefc[k]};
  int steps = 0;
  p.dof = d->map_idof2dof + d->island_idofadr[k];
  p.row = d->map_iefc2efc + d->island_iefcadr[k];
  mujoco.mark(d);
  int* place = mujoco.integers(d, m->nv);
  for (int i = 0; i < p.n; i++) place[p.dof[i]] = i;
  set_up(&p, place);
  mjtNum error = solve(&p, &steps);
  reading[0] += steps;
  reading[1] += error > TOLERANCE;
  reading[2] = error > reading[2] ? error : reading[2];
  for (int i = 0; i < p.n; i++) d->qacc[p.dof[i]] = p.now.x[i];
  for (int i = 0; i < p.rows; i++) d->efc_force[p.row[i]] = p.now.f[i];
  mujoco.release(d);
}

// whether MuJoCo's solution has a contact at the edge of its friction cone; islands with dry friction
// in joints are left to MuJoCo
static int slides(const mjData* d, int island) {
  const int* rows = d->map_iefc2efc + d->island_iefcadr[island];
  if (d->island_nf[island]) return 0;
  for (int i = 0; i < d->island_nefc[island]; i++) {
    const mjContact* c = contact_of(d, rows[i]);
    if (!c || rows[i] != c->efc_address) continue;
    mjtNum used = 0, normal = d->efc_force[rows[i]];
    for (int j = 1; j < c->dim; j++) {
      mjtNum share = d->efc_force[rows[i] + j] / c->friction[j - 1];
      used += share * share;
    }
    if (normal > 0 && used >= (1 - EDGE) * normal * normal) return 1;
  }
  return 0;
}

//---------------------------------------- the plugin ----------------------------------------------

static void compute(const mjModel* m, mjData* d, int instance, int capability) {
  mjtNum* reading = NULL;
  int others = 0, solved = 0;
  if (d->plugin_data[instance]) return;  // called by the last lines, for the other sensors
  for (int i = 0; i < m->nsensor; i++) {
    if (m->sensor_plugin[i] == instance) reading = d->sensordata + m->sensor_adr[i];
    else others += m->sensor_needstage[i] == mjSTAGE_ACC;
  }
  if (!reading) return;
  memset(reading, 0, sizeof(mjtNum) * READINGS);
  for (int k = 0; k < d->nisland; k++) {
    if (!slides(d, k)) continue;
    solve_island(m, d, k, reading);
    solved = 1;
  }
  if (!solved) return;
  mujoco.by_jacobian_transposed(m, d, d->qfrc_constraint, d->efc_force);
  if (!others) return;
  d->flg_rnepost = 0;  // what other sensors have read follows from the old forces
  d->plugin_data[instance] = 1;
  mujoco.sense(m, d);
  d->plugin_data[instance] = 0;
}

static int no_state(const mjModel* m, int instance) { return 0; }

static int readings(const mjModel* m, int instance, int sensor) { return READINGS; }

static int start(const mjModel* m, mjData* d, int instance) {
  d->plugin_data[instance] = 0;
  return 0;
}

static void reset(const mjModel* m, mjtNum* state, void* data, int instance) {}

// fills in the plugin's description; `functions` are those of `mujoco` above, in its order
void interverse_coulomb(mjpPlugin* plugin, void** functions) {
  memcpy(&mujoco, functions, sizeof(mujoco));
  plugin->name = "interverse.coulomb";
  plugin->capabilityflags = mjPLUGIN_SENSOR;
  plugin->needstage = mjSTAGE_ACC;
  plugin->nstate = no_state;
  plugin->nsensordata = readings;
  plugin->init = start;
  plugin->reset = reset;
  plugin->compute = compute;
}

//! What a path does over time: its satellites, its delay, and when it is down.

use crate::LIGHT_KM_PER_S;
use crate::earth::elevation_degrees;
use crate::elevations::Sight;
use crate::grid::{Seen, shortest_path};
use crate::request::{Medium, Path, Request, Station};
use crate::vector::{Vector, distance};
use longwire_block::Dice;
use longwire_units::Nanos;
use std::collections::BTreeSet;

/// The delay and the state of a path over time, and what they are compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// One-way delays, each from its time on; the first from 0 on. While the path is down the last one stays.
    pub delays: Vec<(Nanos, Nanos)>,
    /// Whether the path is up, each from its time on; the first from 0 on.
    pub states: Vec<(Nanos, bool)>,
    /// Times at which another satellite took over at one of the ends.
    pub handovers: Vec<Nanos>,
    /// How many satellites served the ends.
    pub satellites: usize,
    /// For how many epochs each of them served in a row, one service after the other.
    pub services: Vec<u64>,
    /// The satellites above each end.
    pub sights: [Sight; 2],
    /// For how long the path is up.
    pub up: Nanos,
    /// The least and the largest delay that geometry allows, where that is known: of Walker's satellites.
    pub least: Option<Nanos>,
    /// As `least`; none over lasers, whose paths can be of any length.
    pub most: Option<Nanos>,
}

impl Schedule {
    /// Delays while the path is up: the least, the mean over time, and the largest. None if it never is.
    pub fn delays_when_up(&self, duration: Nanos) -> Option<[Nanos; 3]> {
        let mut delays = self.delays.iter().copied().peekable();
        let (mut sum, mut time) = (0u128, 0u128);
        let (mut least, mut most) = (Nanos::NEVER, Nanos::ZERO);
        while let Some((from, delay)) = delays.next() {
            let until = delays.peek().map_or(duration, |next| next.0);
            let up = self.time_up(from, until, duration);
            if up > Nanos::ZERO {
                (least, most) = (least.min(delay), most.max(delay));
                sum += u128::from(delay.0) * u128::from(up.0);
                time += u128::from(up.0);
            }
        }
        let mean = sum.checked_div(time)?;
        Some([least, Nanos(mean as u64), most])
    }

    /// For how long the path is up between two times.
    fn time_up(&self, from: Nanos, until: Nanos, duration: Nanos) -> Nanos {
        let first = self.states.partition_point(|state| state.0 <= from).saturating_sub(1);
        let mut up = 0;
        for (at, &(start, is_up)) in self.states.iter().enumerate().skip(first) {
            if start >= until {
                break;
            }
            let end = self.states.get(at + 1).map_or(duration, |next| next.0).min(until);
            if is_up {
                up += end.0.saturating_sub(start.max(from).0);
            }
        }
        Nanos(up)
    }
}

/// The schedules of a request's paths; none for a path on the ground.
pub(crate) fn schedules(request: &Request) -> Vec<Option<Schedule>> {
    let is_sky = |path: &Path| !matches!(path.via, Medium::Ground(_));
    let mut builders: Vec<Option<Builder<'_>>> = (0..request.paths.len())
        .map(|number| is_sky(&request.paths[number]).then(|| Builder::new(request, number)))
        .collect();
    let mut start = Nanos::ZERO;
    let mut now = request.sky.positions(0.0);
    while start < request.duration {
        let end = (start + request.epoch).min(request.duration);
        let later = request.sky.positions(seconds(end));
        let epoch = Epoch { start, end, now: &now, later: &later };
        builders.iter_mut().flatten().for_each(|builder| builder.serve(&epoch));
        (start, now) = (end, later);
    }
    builders.into_iter().map(|builder| builder.map(Builder::finish)).collect()
}

/// A time between two decisions, and where satellites are at its start and its end.
struct Epoch<'p> {
    start: Nanos,
    end: Nanos,
    now: &'p [Option<Vector>],
    later: &'p [Option<Vector>],
}

/// A schedule that grows, epoch by epoch.
struct Builder<'r> {
    request: &'r Request,
    path: &'r Path,
    /// Draws the satellite of each epoch.
    dice: Dice,
    /// The satellites that serve the path, from its first end to its second; empty if none do.
    route: Vec<usize>,
    used: BTreeSet<usize>,
    schedule: Schedule,
}

impl<'r> Builder<'r> {
    fn new(request: &'r Request, number: usize) -> Self {
        Self {
            request,
            path: &request.paths[number],
            dice: Dice::named(0, &request.link_name(number)),
            route: Vec::new(),
            used: BTreeSet::new(),
            schedule: Schedule::default(),
        }
    }

    fn stations(&self) -> [&'r Station; 2] {
        self.path.ends.map(|end| &self.request.stations[end])
    }

    /// Chooses the satellites of an epoch, and follows them to its end.
    fn serve(&mut self, epoch: &Epoch<'_>) {
        let chosen = self.choose(epoch);
        let before = std::mem::replace(&mut self.route, chosen);
        let ends = |route: &[usize]| route.first().copied().zip(route.last().copied());
        let (old, new) = (ends(&before), ends(&self.route));
        let is_handover = old.is_some() && new.is_some() && old != new;
        if is_handover {
            self.schedule.handovers.push(epoch.start);
        }
        self.count(epoch, old == new);
        let outage = if is_handover { self.request.handover_outage } else { Nanos::ZERO };
        let back = epoch.start + outage;
        let (mut time, mut is_visible) = (epoch.start, false);
        if outage > Nanos::ZERO {
            self.push_state(epoch.start, false);
        }
        while time < epoch.end {
            if time > back && time - back < self.request.step {
                // The outage ended between this step and the one before it.
                self.push_state(back, is_visible);
            }
            let delay = self.delay(seconds(time));
            is_visible = delay.is_some();
            if let Some(delay) = delay {
                self.push_delay(time, delay);
            }
            if time >= back {
                self.push_state(time, is_visible);
            }
            time += self.request.step;
        }
        if back < epoch.end && time > back && time - back < self.request.step {
            self.push_state(back, is_visible);
        }
    }

    /// Counts the satellites above both ends, and those that serve them.
    fn count(&mut self, epoch: &Epoch<'_>, is_as_before: bool) {
        let serving = [self.route.first(), self.route.last()].map(Option::<&usize>::copied);
        let stations = self.stations();
        let sights = &mut self.schedule.sights;
        for ((station, sight), serving) in stations.into_iter().zip(sights).zip(serving) {
            for (satellite, _) in seen(station, epoch.now) {
                let Some(position) = epoch.now[satellite] else { continue };
                let degrees = elevation_degrees(&station.place, position);
                sight.in_view.add(degrees);
                if serving == Some(satellite) {
                    sight.serving.add(degrees);
                }
            }
        }
        self.used.extend(serving.into_iter().flatten());
        match self.schedule.services.last_mut() {
            _ if self.route.is_empty() => {}
            Some(last) if is_as_before => *last += 1,
            _ => self.schedule.services.push(1),
        }
    }

    /// The satellites for an epoch: of those that stay visible until its end; if none stay, of those that are
    /// visible.
    fn choose(&mut self, epoch: &Epoch<'_>) -> Vec<usize> {
        let [one, other] = self.stations().map(|station| seen(station, epoch.now));
        let lasting = |station: &Station, seen: &Seen| -> Seen {
            let stays = |satellite: usize| epoch.later[satellite].is_some_and(|later| station.sees(later));
            seen.iter().copied().filter(|(satellite, _)| stays(*satellite)).collect()
        };
        let [first, last] = self.stations();
        let [staying, also] = [lasting(first, &one), lasting(last, &other)];
        match (self.path.via, self.request.sky.walker()) {
            (Medium::Lasers, Some(walker)) => {
                let walk = |from: &Seen, to: &Seen| shortest_path(walker, epoch.now, from, to);
                walk(&staying, &also).or_else(|| walk(&one, &other)).unwrap_or_default()
            }
            _ => self.draw(&staying, &also).or_else(|| self.draw(&one, &other)).into_iter().collect(),
        }
    }

    /// One of the satellites that both ends see, drawn from those with the least delay.
    fn draw(&mut self, one: &Seen, other: &Seen) -> Option<usize> {
        let both = one.iter().filter_map(|&(satellite, far)| {
            let (_, back) = other.iter().find(|(also, _)| *also == satellite)?;
            Some((satellite, far + back))
        });
        let mut both: Vec<(usize, f64)> = both.collect();
        both.sort_by(|one, other| one.1.total_cmp(&other.1));
        both.truncate(self.request.candidates);
        let drawn = self.dice.below(both.len() as u64);
        both.get(drawn as usize).map(|(satellite, _)| *satellite)
    }

    /// The delay of the current route; none if there is none, or an end does not see its satellite.
    fn delay(&self, seconds: f64) -> Option<Nanos> {
        let [one, other] = self.stations();
        let positions: Option<Vec<Vector>> =
            self.route.iter().map(|satellite| self.request.sky.position(*satellite, seconds)).collect();
        let positions = positions?;
        let (first, last) = (*positions.first()?, *positions.last()?);
        if !one.sees(first) || !other.sees(last) {
            return None;
        }
        let between: f64 = positions.windows(2).map(|pair| distance(pair[0], pair[1])).sum();
        let far = distance(one.place.position(), first) + between + distance(last, other.place.position());
        Some(light(far))
    }

    fn push_delay(&mut self, time: Nanos, delay: Nanos) {
        let delays = &mut self.schedule.delays;
        if delays.last().is_none_or(|last| last.1 != delay) {
            delays.push((time, delay));
        }
    }

    fn push_state(&mut self, time: Nanos, is_up: bool) {
        let states = &mut self.schedule.states;
        if states.last().is_none_or(|last| last.1 != is_up) {
            states.push((time, is_up));
        }
    }

    fn finish(self) -> Schedule {
        let ([least, most], duration) = (self.bounds(), self.request.duration);
        let up = self.schedule.time_up(Nanos::ZERO, duration, duration);
        let mut schedule = Schedule { satellites: self.used.len(), up, least, most, ..self.schedule };
        // Before a path is up for the first time, no packet meets its delay.
        match schedule.delays.first_mut() {
            Some(first) => first.0 = Nanos::ZERO,
            None => schedule.delays.push((Nanos::ZERO, Nanos::ZERO)),
        }
        schedule
    }

    fn bounds(&self) -> [Option<Nanos>; 2] {
        let Some(shell) = self.request.sky.shell() else { return [None; 2] };
        let sum = |of: &dyn Fn(&Station) -> f64| light(self.stations().iter().map(|one| of(one)).sum());
        let up_and_down = sum(&|station| shell.least_km(station.place.altitude_km));
        let most = sum(&|station| shell.most_km(station.minimum_elevation));
        match self.path.via {
            Medium::Lasers => {
                let [one, other] = self.stations().map(|station| station.place.position());
                [Some(up_and_down.max(light(distance(one, other)))), None]
            }
            _ => [Some(up_and_down), Some(most)],
        }
    }
}

/// The satellites above a station's minimum elevation, with their distances.
fn seen(station: &Station, positions: &[Option<Vector>]) -> Seen {
    let above = positions.iter().enumerate().filter_map(|(satellite, position)| {
        let position = (*position)?;
        station.sees(position).then(|| (satellite, distance(station.place.position(), position)))
    });
    above.collect()
}

/// How long light takes, in vacuum.
fn light(kilometres: f64) -> Nanos {
    Nanos((kilometres / LIGHT_KM_PER_S * 1e9).round() as u64)
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Place, Shell, Sky, Walker};

    fn station(name: &str, latitude: f64, longitude: f64) -> Station {
        Station { name: name.into(), place: Place::new(latitude, longitude, 0.0), minimum_elevation: 25.0 }
    }

    /// Starlink's first shell over some minutes of two stations.
    fn request(via: Medium, stations: [Station; 2]) -> Request {
        let walker = Walker {
            pattern: Pattern::Delta,
            inclination_degrees: 53.0,
            satellites: 1584,
            planes: 72,
            phasing: 39,
            altitude_km: 550.0,
        };
        Request {
            sky: Sky::of_walker(walker),
            elements: None,
            stations: stations.into(),
            paths: vec![Path { ends: [0, 1], via, rate: None }],
            duration: Nanos::from_secs(307),
            step: Nanos::from_secs(1),
            epoch: Nanos::from_secs(15),
            candidates: 3,
            handover_outage: Nanos::ZERO,
            repeats: false,
            control_plane: false,
        }
    }

    fn near() -> [Station; 2] {
        [station("user", 47.6, -122.3), station("gateway", 45.5, -122.7)]
    }

    fn far() -> [Station; 2] {
        [station("london", 51.5, -0.1), station("new-york", 40.7, -74.0)]
    }

    fn schedule(request: &Request) -> Schedule {
        schedules(request).remove(0).unwrap()
    }

    /// A bent pipe at 550 km takes 3.67 ms (2 · 550 km) to 7.5 ms (2 · 1123 km, at 25°).
    #[test]
    fn a_bent_pipe_stays_within_its_geometry() {
        let request = request(Medium::BentPipe, near());
        let found = schedule(&request);
        let [least, mean, most] = found.delays_when_up(request.duration).unwrap();
        assert!(found.least.unwrap() <= least && most <= found.most.unwrap(), "{least} {most}");
        assert_eq!(found.least.unwrap(), Nanos(3_669_205));
        assert!(
            Nanos::from_micros(7400) < found.most.unwrap() && found.most.unwrap() < Nanos::from_millis(8)
        );
        assert!(least < mean && mean < most && most < Nanos::from_millis(7), "{least} {mean} {most}");
        // Between 45° and 50° of latitude several satellites are always above 25°.
        assert_eq!((found.up, &*found.states), (request.duration, &[(Nanos::ZERO, true)][..]));
    }

    #[test]
    fn satellites_change_at_multiples_of_the_epoch_only() {
        let mut request = request(Medium::BentPipe, near());
        request.handover_outage = Nanos::from_millis(300);
        let found = schedule(&request);
        assert!(found.handovers.len() > 3 && found.satellites > 2, "{found:?}");
        assert!(found.handovers.iter().all(|time| time.0 % 15_000_000_000 == 0), "{:?}", found.handovers);
        // Each handover is an outage of 300 ms.
        assert_eq!(found.states.len(), 1 + 2 * found.handovers.len());
        for (pair, handover) in found.states[1..].chunks(2).zip(&found.handovers) {
            let back = *handover + Nanos::from_millis(300);
            assert_eq!(pair, [(*handover, false), (back, true)]);
        }
        let down = Nanos::from_millis(300 * found.handovers.len() as u64);
        assert_eq!(found.up, request.duration - down);
        // Between two handovers the delay has no jump: a satellite at 7.6 km/s changes it by 51 us a second.
        for pair in found.delays.windows(2) {
            let jump = pair[0].1.0.abs_diff(pair[1].1.0);
            assert!(jump <= 51_000 || found.handovers.contains(&pair[1].0), "{pair:?}");
        }
    }

    /// Drawn from three, satellites serve for shorter, and are farther away.
    #[test]
    fn one_candidate_is_the_nearest() {
        let [one, three] = [1, 3].map(|candidates| {
            let request = Request { candidates, ..request(Medium::BentPipe, near()) };
            let found = schedule(&request);
            assert_eq!(found.services.iter().sum::<u64>(), 21, "307 s have 21 epochs");
            for sight in &found.sights {
                assert_eq!(sight.serving.total(), 21);
                assert!(sight.in_view.total() > 210 && sight.serving.median() > sight.in_view.median());
            }
            let [_, mean, _] = found.delays_when_up(request.duration).unwrap();
            (mean, found.services.len())
        });
        assert!(one.0 < three.0 && one.1 < three.1, "{one:?} {three:?}");
    }

    /// Handley, "Delay is Not an Option" (HotNets 2018): from London to New York over lasers less than the
    /// 76 ms of round trip that the Internet takes, and more than the great circle of 5585 km in vacuum
    /// (37.3 ms of round trip).
    #[test]
    fn lasers_beat_the_fibre_between_london_and_new_york() {
        let request = request(Medium::Lasers, far());
        let found = schedule(&request);
        let [least, _, most] = found.delays_when_up(request.duration).unwrap();
        assert!(Nanos::from_micros(18_600) < least && most < Nanos::from_millis(38), "{least} {most}");
        assert_eq!(found.up, request.duration);
        assert!(schedule(&self::request(Medium::BentPipe, far())).up == Nanos::ZERO, "too far for one");
    }

    #[test]
    fn a_path_without_satellites_is_down() {
        let polar = [station("north", 80.0, 0.0), station("further", 81.0, 0.0)];
        let request = request(Medium::BentPipe, polar);
        let found = schedule(&request);
        assert_eq!((found.up, found.delays_when_up(request.duration)), (Nanos::ZERO, None));
        assert_eq!(found.states, [(Nanos::ZERO, false)]);
        assert_eq!(found.delays, [(Nanos::ZERO, Nanos::ZERO)]);
    }

    #[test]
    fn a_satellite_stays_for_minutes() {
        let request = request(Medium::BentPipe, near());
        let shell = Shell { altitude_km: 550.0, inclination_degrees: 53.0 };
        for longest in crate::passes::longest_passes(&request) {
            let longest = seconds(longest);
            let most = shell.longest_pass_s(25.0);
            assert!(longest <= most && longest > most - 40.0, "{longest} s of {most} s");
        }
    }
}

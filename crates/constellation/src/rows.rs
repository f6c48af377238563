//! What paths do, as rows of a report: beside what geometry allows.

use crate::{Elevations, Generated, Medium, Path, Request, Schedule, Sight, Station, period_s};
use longwire_report::{Row, shown};
use longwire_units::Nanos;

/// Elevation in degrees from which published measurements count satellites as high.
const HIGH: u32 = 45;

/// The period, a row for each station, and one for each path.
pub fn rows(request: &Request, generated: &Generated) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(walker) = request.sky.walker() {
        let period = period_s(walker.altitude_km);
        rows.push(
            Row::new("orbital period", "ns")
                .measured((period * 1e9).round() as u64)
                .extra("kind", "period")
                .note(format!("{:.2} min at {} km", period / 60.0, walker.altitude_km)),
        );
    }
    let stations = request.stations.iter().zip(&generated.longest_passes);
    rows.extend(stations.map(|(station, pass)| station_row(request, station, *pass)));
    for (path, schedule) in request.paths.iter().zip(&generated.schedules) {
        let [one, other] = path.ends.map(|end| &*request.stations[end].name);
        let name = format!("{one} to {other}");
        rows.push(match (schedule, path.via) {
            (Some(schedule), _) => sight_notes(path_row(name, request, schedule), request, path, schedule),
            (None, Medium::Ground(delay)) => Row::new(name, "ns").measured(delay.0).extra("kind", "ground"),
            (None, _) => Row::new(name, "ns").extra("kind", "path"),
        });
    }
    rows
}

/// The longest pass of a satellite, beside the longest that geometry allows.
fn station_row(request: &Request, station: &Station, pass: Nanos) -> Row {
    let row = Row::new(format!("{}, longest pass", station.name), "ns").measured(pass.0);
    let row = row.extra("kind", "station").extra("minimum_elevation_degrees", station.minimum_elevation);
    let Some(shell) = request.sky.shell() else { return row };
    let most = shell.longest_pass_s(station.minimum_elevation) * 1e9;
    let (longest, lowest) = (shown::time(most), station.minimum_elevation);
    judged(row.extra("most_ns", most as u64), pass.0 as f64 <= most)
        .note(format!("at most {longest} through the zenith, above {lowest}\u{b0}"))
}

fn judged(mut row: Row, pass: bool) -> Row {
    row.pass = Some(pass);
    row
}

/// A path's mean delay while it is up, its range beside that of geometry, its outages and its handovers.
fn path_row(name: String, request: &Request, schedule: &Schedule) -> Row {
    let up_ppm = (u128::from(schedule.up.0) * 1_000_000 / u128::from(request.duration.0)) as u64;
    let row = Row::new(name, "ns")
        .extra("kind", "path")
        .extra("up_ppm", up_ppm)
        .extra("up_ns", schedule.up.0)
        .extra("satellites", schedule.satellites)
        .extra("handovers", schedule.handovers.len())
        .extra("handover_times_ns", schedule.handovers.iter().map(|time| time.0).collect::<Vec<_>>())
        .extra("epoch_ns", request.epoch.0)
        .extra("geometry_least_ns", schedule.least.map(|time| time.0))
        .extra("geometry_most_ns", schedule.most.map(|time| time.0));
    let Some([least, mean, most]) = schedule.delays_when_up(request.duration) else {
        return row.note("never up: no satellite is above both ends");
    };
    let fits = schedule.least.is_none_or(|bound| bound <= least)
        && schedule.most.is_none_or(|bound| most <= bound)
        && schedule.handovers.iter().all(|time| time.0 % request.epoch.0 == 0);
    let bound = |time: Option<Nanos>| time.map_or("unknown".to_owned(), |time| shown::time(time.0 as f64));
    let [low, high, lowest, highest] = [Some(least), Some(most), schedule.least, schedule.most].map(bound);
    judged(row.measured(mean.0), fits)
        .extra("delay_least_ns", least.0)
        .extra("delay_most_ns", most.0)
        .note(format!("one way {low} to {high}; geometry: {lowest} to {highest}"))
        .note(format!(
            "up {:.2} % of the time; {} handovers between {} satellites, every {} at most",
            up_ppm as f64 / 1e4,
            schedule.handovers.len(),
            schedule.satellites,
            request.epoch
        ))
}

/// For how long satellites serve a path, and how high they are among those in view of its ends.
fn sight_notes(row: Row, request: &Request, path: &Path, schedule: &Schedule) -> Row {
    let services = schedule.services.len() as u64;
    if services == 0 {
        return row;
    }
    let served: u64 = schedule.services.iter().sum();
    let short = schedule.services.iter().filter(|epochs| **epochs == 1).count() as u64;
    let mean_ns = request.epoch.0 as f64 * served as f64 / services as f64;
    let epochs = request.duration.0.div_ceil(request.epoch.0);
    let mut row = row
        .extra("epochs", epochs)
        .extra("epochs_served", served)
        .extra("services", services)
        .extra("services_of_one_epoch", short)
        .note(format!(
            "satellites serve for {} on average; {} of {services} times for one epoch",
            shown::time(mean_ns),
            share(short, services)
        ));
    for (end, sight) in path.ends.into_iter().zip(&schedule.sights) {
        row = row.note(format!(
            "{}: {:.1} satellites in view, {}; those that serve: {}",
            request.stations[end].name,
            sight.in_view.total() as f64 / epochs as f64,
            heights(&sight.in_view),
            heights(&sight.serving)
        ));
    }
    let both = |of: &dyn Fn(&Sight) -> u64| schedule.sights.iter().map(of).collect::<Vec<_>>();
    let median = |of: &Elevations| u64::from(of.median().unwrap_or_default());
    row.extra("in_view", both(&|sight| sight.in_view.total()))
        .extra("in_view_high", both(&|sight| sight.in_view.at_least(HIGH)))
        .extra("in_view_median_degrees", both(&|sight| median(&sight.in_view)))
        .extra("serving", both(&|sight| sight.serving.total()))
        .extra("serving_high", both(&|sight| sight.serving.at_least(HIGH)))
        .extra("serving_median_degrees", both(&|sight| median(&sight.serving)))
}

/// The median of elevations, and the share of the high ones.
fn heights(of: &Elevations) -> String {
    let median = of.median().unwrap_or_default();
    format!("median {median}\u{b0}, {} above {HIGH}\u{b0}", share(of.at_least(HIGH), of.total()))
}

/// A share in per cent.
fn share(part: u64, all: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / all as f64)
}

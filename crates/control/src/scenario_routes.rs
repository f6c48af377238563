//! The API's endpoints about the scenario that an instance runs.

#![allow(
    unused_qualifications,
    reason = "`utoipa::path` writes the full paths of the types that it is given"
)]

use crate::instance::Instance;
use crate::problem::{Problem, Refusals};
use crate::requests::{Body, Running, answered, changed};
use crate::rewire::{RewireRequest, RewireResponse};
use crate::scenario::{Comparison, ScenarioRequest, ScenarioText};
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest scenario in a request, in bytes.
const MAX_SCENARIO: usize = 16 << 20;

/// The endpoints.
pub(crate) fn described() -> OpenApiRouter<Arc<dyn Instance>> {
    let all = OpenApiRouter::new().routes(routes!(scenario, apply, rewire)).routes(routes!(compare));
    all.layer(DefaultBodyLimit::max(MAX_SCENARIO))
}

/// Shows the running instance as a scenario.
#[utoipa::path(get, path = "/v1/scenario", responses((status = OK, body = ScenarioText), Refusals))]
async fn scenario(State(instance): Running) -> Result<Json<ScenarioText>, Problem> {
    answered(instance, |instance| Ok(ScenarioText { toml: instance.scenario()? })).await
}

/// Applies a scenario to the running instance with the fewest changes, and lists them. Links, sources and
/// media change at one instant; objects without differences are not touched.
#[utoipa::path(put, path = "/v1/scenario", request_body = ScenarioRequest,
    responses((status = OK, body = Comparison), Refusals))]
async fn apply(
    State(instance): Running,
    Body(wanted): Body<ScenarioRequest>,
) -> Result<Json<Comparison>, Problem> {
    changed(instance, move |instance| instance.apply(&wanted)).await
}

/// Lists the differences between the running instance and a scenario. Mistakes of the scenario are shown to
/// the scope `install` only.
#[utoipa::path(post, path = "/v1/scenario/differences", request_body = ScenarioText,
    responses((status = OK, body = Comparison), Refusals))]
async fn compare(
    State(instance): Running,
    Body(text): Body<ScenarioText>,
) -> Result<Json<Comparison>, Problem> {
    answered(instance, move |instance| instance.compare(&text.toml)).await
}

/// Adds sections to the running scenario, and removes links and hosts from it, at one instant: all or none.
#[utoipa::path(patch, path = "/v1/scenario", request_body = RewireRequest,
    responses((status = OK, body = RewireResponse), Refusals))]
async fn rewire(
    State(instance): Running,
    Body(ask): Body<RewireRequest>,
) -> Result<Json<RewireResponse>, Problem> {
    changed(instance, move |instance| instance.rewire(&ask)).await
}

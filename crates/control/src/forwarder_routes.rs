//! The API's endpoints of routers' programs.

#![allow(
    unused_qualifications,
    reason = "`utoipa::path` writes the full paths of the types that it is given"
)]

use crate::forwarder::{
    Entries, Keys, Leases, MapChange, NewForwarder, NewState, ProgramRequest, Rings, TypeQuery,
};
use crate::instance::Instance;
use crate::problem::{Problem, Refusals};
use crate::requests::{Body, InPath, InQuery, Running, answered};
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use serde_json::Value;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Highest length of a request's body that may hold an object file, in hexadecimal digits.
const MAX_OBJECT: usize = 9 << 20;

type Answer = Result<Json<Value>, Problem>;
/// A request's path: a router.
type OfRouter = InPath<String>;
/// A request's path: a router, and the number of a program.
type OfProgram = InPath<(String, u32)>;
/// A request's path: a router, the number of a program, and a map.
type OfMap = InPath<(String, u32, String)>;

/// The endpoints.
pub(crate) fn described() -> OpenApiRouter<Arc<dyn Instance>> {
    OpenApiRouter::new()
        .routes(routes!(list, install))
        .routes(routes!(levels))
        .routes(routes!(renew))
        .routes(routes!(replace, remove))
        .routes(routes!(state, set_state))
        .routes(routes!(records))
        .routes(routes!(maps))
        .routes(routes!(entries, write))
        .routes(routes!(values))
        .routes(routes!(clear))
        .layer(DefaultBodyLimit::max(MAX_OBJECT))
}

async fn ask(State(instance): Running, router: String, ask: ProgramRequest) -> Answer {
    answered(instance, move |instance| instance.forwarders(&router, &ask)).await
}

/// Lists a router's programs, what they have done, and what a packet may need at most.
#[utoipa::path(get, path = "/v1/routers/{router}/forwarders", params(("router" = String, Path)),
    responses((status = OK, body = Object), Refusals))]
async fn list(instance: Running, InPath(router): OfRouter) -> Answer {
    ask(instance, router, ProgramRequest::List).await
}

/// Installs a program between two batches of packets, and answers its number.
#[utoipa::path(post, path = "/v1/routers/{router}/forwarders", params(("router" = String, Path)),
    request_body = NewForwarder, responses((status = OK, body = Object), Refusals))]
async fn install(instance: Running, InPath(router): OfRouter, new: Body<NewForwarder>) -> Answer {
    ask(instance, router, ProgramRequest::Install(new.0)).await
}

/// Lists who is above a router, what became of the packets that went up, and where control processes come.
#[utoipa::path(get, path = "/v1/routers/{router}/levels", params(("router" = String, Path)),
    responses((status = OK, body = Object), Refusals))]
async fn levels(instance: Running, InPath(router): OfRouter) -> Answer {
    ask(instance, router, ProgramRequest::Levels).await
}

/// Renews the leases of programs.
#[utoipa::path(put, path = "/v1/routers/{router}/leases", params(("router" = String, Path)),
    request_body = Leases, responses((status = OK, body = Object), Refusals))]
async fn renew(instance: Running, InPath(router): OfRouter, leases: Body<Leases>) -> Answer {
    ask(instance, router, ProgramRequest::Renew(leases.0.fids)).await
}

/// Puts a program in the place of another, with what it can keep of it.
#[utoipa::path(put, path = "/v1/routers/{router}/forwarders/{fid}",
    params(("router" = String, Path), ("fid" = u32, Path)),
    request_body = NewForwarder, responses((status = OK, body = Object), Refusals))]
async fn replace(instance: Running, InPath((router, fid)): OfProgram, new: Body<NewForwarder>) -> Answer {
    ask(instance, router, ProgramRequest::Replace(fid, new.0)).await
}

/// Removes a program between two batches of packets.
#[utoipa::path(delete, path = "/v1/routers/{router}/forwarders/{fid}",
    params(("router" = String, Path), ("fid" = u32, Path)),
        responses((status = OK, body = Object), Refusals))]
async fn remove(instance: Running, InPath((router, fid)): OfProgram) -> Answer {
    ask(instance, router, ProgramRequest::Remove(fid)).await
}

/// Shows a program's state.
#[utoipa::path(get, path = "/v1/routers/{router}/forwarders/{fid}/state",
    params(("router" = String, Path), ("fid" = u32, Path), TypeQuery),
        responses((status = OK, body = Object), Refusals))]
async fn state(instance: Running, InPath((router, fid)): OfProgram, typed: InQuery<TypeQuery>) -> Answer {
    ask(instance, router, ProgramRequest::Get(fid, typed.0)).await
}

/// Writes a program's state, all of it, between two batches of packets.
#[utoipa::path(put, path = "/v1/routers/{router}/forwarders/{fid}/state",
    params(("router" = String, Path), ("fid" = u32, Path)),
    request_body = NewState, responses((status = OK, body = Object), Refusals))]
async fn set_state(instance: Running, InPath((router, fid)): OfProgram, state: Body<NewState>) -> Answer {
    ask(instance, router, ProgramRequest::Set(fid, state.0)).await
}

/// Takes records out of a program's rings, the oldest first.
#[utoipa::path(post, path = "/v1/routers/{router}/forwarders/{fid}/events",
    params(("router" = String, Path), ("fid" = u32, Path)),
    request_body = Rings, responses((status = OK, body = Object), Refusals))]
async fn records(instance: Running, InPath((router, fid)): OfProgram, rings: Body<Rings>) -> Answer {
    ask(instance, router, ProgramRequest::Events(fid, rings.0)).await
}

/// Lists a program's maps.
#[utoipa::path(get, path = "/v1/routers/{router}/forwarders/{fid}/maps",
    params(("router" = String, Path), ("fid" = u32, Path)),
        responses((status = OK, body = Object), Refusals))]
async fn maps(instance: Running, InPath((router, fid)): OfProgram) -> Answer {
    ask(instance, router, ProgramRequest::Maps(fid)).await
}

/// Shows the entries of a program's map, or one of them.
#[utoipa::path(get, path = "/v1/routers/{router}/forwarders/{fid}/maps/{map}",
    params(("router" = String, Path), ("fid" = u32, Path), ("map" = String, Path), Entries),
    responses((status = OK, body = Object), Refusals))]
async fn entries(instance: Running, InPath((router, fid, map)): OfMap, entries: InQuery<Entries>) -> Answer {
    ask(instance, router, ProgramRequest::Map(fid, map, entries.0)).await
}

/// Removes entries of a program's map, ignoring missing ones, then writes others. Changes before a wrong one
/// remain.
#[utoipa::path(patch, path = "/v1/routers/{router}/forwarders/{fid}/maps/{map}",
    params(("router" = String, Path), ("fid" = u32, Path), ("map" = String, Path)),
    request_body = MapChange, responses((status = OK, body = Object), Refusals))]
async fn write(instance: Running, InPath((router, fid, map)): OfMap, change: Body<MapChange>) -> Answer {
    ask(instance, router, ProgramRequest::Write(fid, map, change.0)).await
}

/// Shows the values of keys of a program's map, null for missing ones. Allows more keys than a path.
#[utoipa::path(post, path = "/v1/routers/{router}/forwarders/{fid}/maps/{map}/values",
    params(("router" = String, Path), ("fid" = u32, Path), ("map" = String, Path)),
    request_body = Keys, responses((status = OK, body = Object), Refusals))]
async fn values(instance: Running, InPath((router, fid, map)): OfMap, keys: Body<Keys>) -> Answer {
    ask(instance, router, ProgramRequest::Values(fid, map, keys.0.keys)).await
}

/// Removes all entries of a program's map; sets all values of an array to zero.
#[utoipa::path(delete, path = "/v1/routers/{router}/forwarders/{fid}/maps/{map}/entries",
    params(("router" = String, Path), ("fid" = u32, Path), ("map" = String, Path)),
    responses((status = OK, body = Object), Refusals))]
async fn clear(instance: Running, InPath((router, fid, map)): OfMap) -> Answer {
    ask(instance, router, ProgramRequest::Clear(fid, map)).await
}

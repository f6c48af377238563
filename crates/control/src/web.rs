//! Server of the API and the dashboard on a TCP address of this machine.
//!
//! Every user of the machine, and every page that a browser on it shows, can reach such an address. Requests
//! have to name the machine itself as their host, so that no foreign name that resolves to it passes (DNS
//! rebinding), and changes have to come from the server's own pages, and to be JSON, as on the Unix socket:
//! what a form of another page can send is no change.
//!
//! With tokens, requests have to bear one instead, which no foreign page has. Then any address will do, but
//! of others' only with TLS, so that nobody on the way reads the token. A client may prove who it is by a
//! certificate, which a browser uses for any page that asks: so the origin of changes counts there, too.

use crate::agent::Agent;
use crate::certificate::Certificate;
use crate::instance::Instance;
use crate::problem::{Problem, QuotesFiles};
use crate::service::{Service, runtime};
use crate::tls::{Tls, TlsError, TlsListener};
use crate::tokens::{Scope, TokenError, Tokens};
use crate::{agent_routes, dashboard, routes};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpListener;

/// The name of the server's thread.
const THREAD: &str = "longwire-web";

/// The address if none is given, and it is free.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8399);

/// The address of a web server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebAddress {
    /// On 127.0.0.1: port 8399, or another one if that is taken.
    #[default]
    Usual,
    /// On this address; port 0 is any free port.
    At(SocketAddr),
}

impl WebAddress {
    /// The address with a port that many higher; port 0 stays.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn behind(self, ports: u16) -> Result<Self, WebError> {
        let address = match self {
            _ if ports == 0 => return Ok(self),
            Self::Usual => USUAL,
            Self::At(address) if address.port() == 0 => return Ok(self),
            Self::At(address) => address,
        };
        let port = u32::from(address.port()) + u32::from(ports);
        let none = |_| WebError::Malformed(format!("{}:{port}", address.ip()));
        Ok(Self::At(SocketAddr::new(address.ip(), u16::try_from(port).map_err(none)?)))
    }
}

/// Configuration of a web server.
#[derive(Debug, Clone, Default)]
pub struct Web {
    /// Its address.
    pub address: WebAddress,
    /// The tokens and certificates that it asks for. Without any it listens on addresses of this machine
    /// alone.
    pub tokens: Option<Arc<Tokens>>,
    /// Its certificate, and those of its clients.
    pub tls: Option<Arc<Tls>>,
    /// Whether tokens may cross a network without TLS.
    pub is_cleartext_safe: bool,
}

impl Web {
    /// Checks that no others reach the address, or have to prove who they are, and that nobody on the way
    /// sees how.
    ///
    /// # Errors
    /// If they can without a token.
    pub fn check(&self) -> Result<(), WebError> {
        let WebAddress::At(address) = self.address else { return Ok(()) };
        match (&self.tokens, &self.tls) {
            _ if address.ip().is_loopback() => Ok(()),
            (None, _) => Err(WebError::Reachable(address.ip())),
            (Some(_), None) if !self.is_cleartext_safe => Err(WebError::Cleartext(address.ip())),
            (Some(_), _) => Ok(()),
        }
    }

    /// Reads its files again: tokens hold for the next request, certificates for the next connection.
    ///
    /// # Errors
    /// If one is wrong; what it said before stays.
    pub fn read_again(&self) -> Result<(), WebError> {
        if let Some(tokens) = &self.tokens {
            tokens.read_again()?;
        }
        if let Some(tls) = &self.tls {
            tls.read_again()?;
        }
        Ok(())
    }
}

impl From<WebAddress> for Web {
    fn from(address: WebAddress) -> Self {
        Self { address, ..Self::default() }
    }
}

/// Failure to start a web server.
#[derive(Debug, Error)]
pub enum WebError {
    /// Not an address.
    #[error("\"{0}\" is not an address; write a port, or an address and a port such as 127.0.0.1:8399")]
    Malformed(String),
    /// An address that other machines can reach.
    #[error(
        "{0} is not an address of this machine alone; use 127.0.0.1, [::1] or localhost, or serve --tokens"
    )]
    Reachable(IpAddr),
    /// An address where others could read the tokens.
    #[error(
        "tokens sent to {0} could be read on the way: serve --tls-cert and --tls-key, or --cleartext where \
         the network encrypts (WireGuard) or nobody else uses it"
    )]
    Cleartext(IpAddr),
    /// Its tokens can't be read.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// Its certificate can't be read.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address can't be had.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The server's thread can't be started.
    #[error("can't start the thread of the web server: {0}")]
    Thread(io::Error),
}

impl FromStr for WebAddress {
    type Err = WebError;

    /// Parses `8399`, `127.0.0.1:8399`, `[::1]:8399` or `localhost:8399`.
    fn from_str(text: &str) -> Result<Self, WebError> {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        let address = port.parse().map(local).or_else(|_| text.parse::<SocketAddr>());
        address.map(Self::At).map_err(|_| WebError::Malformed(text.into()))
    }
}

/// The API and the dashboard of a running instance on a TCP address. Dropping it ends the server.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    _service: Service,
}

impl WebServer {
    /// Serves `instance`.
    ///
    /// # Errors
    /// If other machines can reach the address without a token, or listening fails.
    pub fn start(web: Web, instance: Arc<dyn Instance>) -> Result<Self, WebError> {
        Self::begin(web, routes::router(instance).merge(dashboard::router()))
    }

    /// Serves `agent`, and the API of each scenario that it runs below `/parts/NAME`.
    ///
    /// # Errors
    /// As [`WebServer::start`].
    pub fn start_agent(web: Web, agent: Arc<dyn Agent>) -> Result<Self, WebError> {
        Self::begin(web, agent_routes::router(agent))
    }

    fn begin(web: Web, router: Router) -> Result<Self, WebError> {
        web.check()?;
        let Web { address, tokens, tls, .. } = web;
        let runtime = runtime().map_err(WebError::Thread)?;
        let listener = runtime.block_on(listen(address))?;
        let failed = |source| WebError::Listen { address: USUAL, source };
        let address = listener.local_addr().map_err(failed)?;
        let checks = Checks { tokens, is_tls: tls.is_some() };
        let router = router.layer(from_fn(move |request, next| checked(checks.clone(), request, next)));
        let service = match tls {
            Some(tls) => Service::start(THREAD, runtime, TlsListener { listener, tls }, router),
            None => Service::start(THREAD, runtime, listener, router),
        };
        Ok(Self { address, _service: service.map_err(WebError::Thread)? })
    }

    /// The address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn listen(address: WebAddress) -> Result<TcpListener, WebError> {
    let bind = async |address: SocketAddr| {
        TcpListener::bind(address).await.map_err(|source| WebError::Listen { address, source })
    };
    match address {
        WebAddress::At(address) => bind(address).await,
        WebAddress::Usual => match bind(USUAL).await {
            Err(WebError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
                bind(SocketAddr::new(USUAL.ip(), 0)).await
            }
            bound => bound,
        },
    }
}

/// What requests are checked by.
#[derive(Clone)]
struct Checks {
    tokens: Option<Arc<Tokens>>,
    is_tls: bool,
}

/// Headers of every answer: a page runs its own scripts only, and no other page shows it or reads it.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

async fn checked(checks: Checks, mut request: Request, next: Next) -> Response {
    let mut answer = match check(&checks, &request) {
        Ok(scope) => {
            if let Some(scope) = scope {
                request.extensions_mut().insert(scope);
            }
            let answer = next.run(request).await;
            let quotes_files = answer.extensions().get::<QuotesFiles>().is_some();
            if quotes_files && scope.is_some_and(|scope| scope < Scope::Install) {
                mistakes()
            } else {
                answer
            }
        }
        Err(problem) => problem.into_response(),
    };
    if answer.status() == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The answer to mistakes that are not for their sender.
fn mistakes() -> Response {
    let detail = "there are mistakes, which can quote files of this machine: longwire check says which, or \
                  ask with the scope install";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).into_response()
}

/// Whether a request may pass, and the scope of its token or certificate, if it needs one.
fn check(checks: &Checks, request: &Request) -> Result<Option<Scope>, Box<Problem>> {
    let (method, headers) = (request.method(), request.headers());
    let certificate = request.extensions().get::<Certificate>();
    let scope = match &checks.tokens {
        Some(tokens) => tokens.check(method, request.uri().path(), headers, certificate)?,
        None => check_host(headers).map(|()| None)?,
    };
    // A page of another origin has no token. A certificate is the browser's.
    if checks.tokens.is_none() || certificate.is_some() {
        check_origin(method, headers, checks.is_tls)?;
    }
    Ok(scope)
}

/// The text of a header.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Whether a request names this machine as its host.
fn check_host(headers: &HeaderMap) -> Result<(), Box<Problem>> {
    let host = text(headers, header::HOST).unwrap_or("");
    if headers.get_all(header::HOST).iter().count() == 1 && is_own_host(host) {
        return Ok(());
    }
    let detail = format!("\"{host}\" is not this machine: use 127.0.0.1, [::1] or localhost");
    Err(Box::new(Problem::new(StatusCode::FORBIDDEN, detail)))
}

/// Whether a change does not come from a page of another origin that a browser shows.
fn check_origin(method: &Method, headers: &HeaderMap, is_tls: bool) -> Result<(), Box<Problem>> {
    if [Method::GET, Method::HEAD].contains(method) {
        return Ok(());
    }
    let scheme = if is_tls { "https" } else { "http" };
    let own = format!("{scheme}://{}", text(headers, header::HOST).unwrap_or(""));
    let is_foreign = text(headers, header::ORIGIN).is_some_and(|origin| origin != own);
    let site = text(headers, HeaderName::from_static("sec-fetch-site"));
    if is_foreign || site.is_some_and(|site| site != "same-origin" && site != "none") {
        let detail = "a page of another origin can't change anything here";
        return Err(Box::new(Problem::new(StatusCode::FORBIDDEN, detail)));
    }
    Ok(())
}

/// Whether a host header names this machine. Its port may be that of a tunnel.
fn is_own_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let ip = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_this_machine() {
        let read = |text: &str| text.parse::<WebAddress>().map_err(|error| error.to_string());
        let at = |text: &str| Ok(WebAddress::At(text.parse().unwrap()));
        assert_eq!(read("9000"), at("127.0.0.1:9000"));
        assert_eq!(read("localhost:9000"), at("127.0.0.1:9000"));
        assert_eq!(read("127.3.2.1:80"), at("127.3.2.1:80"));
        assert_eq!(read("[::1]:80"), at("[::1]:80"));
        for text in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            let web = Web::from(read(text).unwrap());
            assert!(web.check().unwrap_err().to_string().contains("this machine alone"), "{text}");
        }
        // Loopback addresses need nothing, others a token, and TLS for that.
        let path = std::env::temp_dir().join(format!("longwire-web-{}", std::process::id()));
        std::fs::write(&path, format!("read {}\n", "a".repeat(32))).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let tokens = Some(Arc::new(Tokens::read(&path).unwrap()));
        std::fs::remove_file(path).unwrap();
        let with_tokens = |text: &str| Web { tokens: tokens.clone(), ..Web::from(read(text).unwrap()) };
        assert!(with_tokens("127.0.0.1:80").check().is_ok());
        assert!(matches!(with_tokens("192.0.2.1:80").check(), Err(WebError::Cleartext(_))));
        assert!(Web { is_cleartext_safe: true, ..with_tokens("192.0.2.1:80") }.check().is_ok());
        for text in ["", "example.org:80", "127.0.0.1", "70000", "localhost"] {
            assert!(read(text).unwrap_err().contains("not an address"), "{text}");
        }
    }

    #[test]
    fn ports_follow_each_other() {
        let at = |text: &str| text.parse::<WebAddress>().unwrap();
        assert_eq!(at("9000").behind(2).unwrap(), at("9002"));
        assert_eq!(at("0").behind(2).unwrap(), at("0"));
        assert_eq!(WebAddress::Usual.behind(1).unwrap(), at("8400"));
        assert_eq!(at("65535").behind(0).unwrap(), at("65535"));
        assert!(at("65535").behind(1).is_err());
    }

    #[test]
    fn hosts_are_this_machine_or_refused() {
        for host in ["localhost", "LOCALHOST:8399", "127.0.0.1:1", "127.1.2.3", "[::1]:8399", "[::1]"] {
            assert!(is_own_host(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org:8399", "192.0.2.1", "[::2]:80", "127.0.0.1.x", ":80"]
        {
            assert!(!is_own_host(host), "{host}");
        }
    }
}

//! Limits with libraries that run on Redis, on two servers: see ../go/main.go, which does the same.
use std::collections::HashMap;
use std::future::Future;
use std::io::stdin;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use limitador::limit::{Context, Limit};
use limitador::storage::redis::AsyncRedisStorage;
use limitador::AsyncRateLimiter;

const LIMIT: usize = 20;
const CALLERS: usize = 50;
const EACH: usize = 4;
const DAY: u64 = 86400; // seconds

/// Whether a call is admitted, and what else the limiter says.
type Reply = Result<(bool, String), String>;
type Hit = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = Reply> + Send>> + Send + Sync>;

fn actix(addr: &str) -> Hit {
    let limiter = actix_limitation::Limiter::builder(format!("redis://{addr}"))
        .limit(LIMIT)
        .period(Duration::from_secs(DAY))
        .build()
        .unwrap();
    Arc::new(move |key| {
        let limiter = limiter.clone();
        Box::pin(async move {
            match limiter.count(key).await {
                Ok(status) => Ok((true, status.remaining().to_string())),
                Err(actix_limitation::Error::LimitExceeded(status)) => Ok((false, status.remaining().to_string())),
                Err(error) => Err(error.to_string()),
            }
        })
    })
}

async fn limitador(addr: &str) -> Hit {
    let storage = AsyncRedisStorage::new(&format!("redis://{addr}")).await.unwrap();
    let limiter = AsyncRateLimiter::new_with_storage(Box::new(storage));
    let variables = vec!["caller".try_into().unwrap()];
    limiter.add_limit(Limit::new("calls", LIMIT as u64, DAY, vec![], variables));
    let limiter = Arc::new(limiter);
    Arc::new(move |key| {
        let limiter = limiter.clone();
        Box::pin(async move {
            let context = Context::from(HashMap::from([("caller".to_string(), key)]));
            let result = limiter.check_rate_limited_and_update(&"calls".to_string().into(), &context, 1).await;
            let result = result.map_err(|error| format!("{error:?}"))?;
            Ok((!result.limited, format!("{:?}", result.counters[0].remaining())))
        })
    })
}

/// A library. One that is not exact reads whether a call fits before it counts it: each caller can be one too many.
struct Library {
    name: &'static str,
    exact: bool,
}

const LIBRARIES: [Library; 2] =
    [Library { name: "actix-limitation", exact: true }, Library { name: "limitador", exact: false }];

#[derive(Default)]
struct Outcome {
    admitted: i64,
    replies: Vec<String>,
    stopped: String,
    again: i64,
}

/// Calls at the same time; returns how many are admitted, less a thousand for each error.
async fn count(hit: &Hit, key: &str) -> i64 {
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (hit, key) = (hit.clone(), key.to_string());
            tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..EACH {
                    admitted += hit(key.clone()).await.map_or(-1000, |reply| i64::from(reply.0));
                }
                admitted
            })
        })
        .collect();
    let mut total = 0;
    for caller in callers {
        total += caller.await.unwrap();
    }
    total
}

async fn describe(hit: &Hit, key: &str) -> String {
    match tokio::time::timeout(Duration::from_secs(20), hit(key.to_string())).await {
        Ok(Ok(reply)) => format!("{reply:?}"),
        Ok(Err(_)) => "error".to_string(),
        Err(_) => "late".to_string(),
    }
}

async fn wait(hit: &Hit) {
    for _ in 0..600 {
        if describe(hit, "wait").await.starts_with('(') {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn read_line() {
    stdin().read_line(&mut String::new()).unwrap();
}

#[tokio::main]
async fn main() {
    let addrs: Vec<String> = std::env::args().skip(1).collect();
    let mut runs: Vec<(usize, Hit, Outcome)> = Vec::new();
    for (number, library) in LIBRARIES.iter().enumerate() {
        for addr in &addrs {
            let hit = if library.name == "limitador" { limitador(addr).await } else { actix(addr) };
            let mut outcome = Outcome { admitted: count(&hit, &format!("rust {}", library.name)).await, ..Default::default() };
            for _ in 0..LIMIT + 3 {
                outcome.replies.push(describe(&hit, &format!("rust {} 2", library.name)).await);
            }
            runs.push((number, hit, outcome));
        }
    }
    println!("stop");
    read_line();
    for (number, hit, outcome) in &mut runs {
        outcome.stopped = describe(hit, &format!("stopped {number}")).await;
    }
    println!("start");
    read_line();
    let mut failed = false;
    for (number, library) in LIBRARIES.iter().enumerate() {
        let mut outcomes = Vec::new();
        for (_, hit, outcome) in runs.iter_mut().filter(|run| run.0 == number) {
            wait(hit).await;
            outcome.again = count(hit, &format!("rust {} 3", library.name)).await;
            outcomes.push(outcome);
        }
        let (ours, theirs) = (&outcomes[0], &outcomes[outcomes.len() - 1]);
        println!(
            "{:24} {} of {} calls admitted, {} after a restart, while stopped: {}",
            library.name, ours.admitted, CALLERS * EACH, ours.again, ours.stopped
        );
        let limit = LIMIT as i64;
        let most = if library.exact { limit } else { limit + CALLERS as i64 - 1 };
        let right = |n: i64| limit <= n && n <= most;
        let all = outcomes.iter().all(|o| right(o.admitted) && right(o.again));
        if !all || ours.replies != theirs.replies || ours.stopped != theirs.stopped {
            failed = true;
            for o in &outcomes {
                println!("FAILED: {} {} {} {:?}", o.admitted, o.again, o.stopped, o.replies);
            }
        }
    }
    std::process::exit(i32::from(failed));
}

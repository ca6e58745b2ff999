//! A payment channel inside the test, for what Handback does with its answers. How they come over the wire is
//! tested against the stand-in service.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use handback::core::Core;
use handback::core::clock::Clock;
use handback::core::order::pay::{NewPayment, Said};
use handback::core::policy::Policy;
use handback::core::ports::{Answer, Asked, PaymentChannel, RefundCall, Services};
use handback::store::Db;

use super::database::TestDb;
use super::shop::{START_MS, Shop, a_payment};

/// A payment channel that says what the test wrote down for it.
#[derive(Default)]
pub struct Told {
    answers: Mutex<Vec<Asked>>,
    pub asked: Mutex<Vec<String>>,
}

impl PaymentChannel for Told {
    fn lease_ms(&self) -> i64 {
        5_000
    }

    fn ask<'a>(&'a self, order_no: &'a str) -> BoxFuture<'a, Asked> {
        self.asked.lock().unwrap().push(order_no.to_owned());
        let answer = self.answers.lock().unwrap().pop().unwrap_or(Asked::Unknown("no answer".into()));
        async move { answer }.boxed()
    }

    fn refund<'a>(&'a self, _: &'a RefundCall) -> BoxFuture<'a, Answer> {
        async move { Answer::Applied }.boxed()
    }
}

/// A shop whose channel gives these answers, the last first.
pub async fn with_channel(db: &TestDb, answers: Vec<Asked>) -> (Shop, Arc<Told>) {
    let told = Arc::new(Told { answers: Mutex::new(answers), ..Told::default() });
    let clock = Clock::test(START_MS);
    let services = Services { channel: Some(told.clone()), ..Services::default() };
    let store = Db::open(&db.url, true, 8).await.unwrap();
    let core = Core::with_services(store, clock.clone(), Policy::default(), services);
    (Shop { core, clock }, told)
}

/// A payment that the buyer began and nobody has finished.
pub fn started(order_no: &str) -> NewPayment {
    let mut payment = a_payment(order_no, &format!("started-{order_no}"));
    payment.said = Said::Started;
    payment
}

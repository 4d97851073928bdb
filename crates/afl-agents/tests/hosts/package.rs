//! The Python package `agentflow`, used as its users do.

use std::path::Path;
use std::process::{Command, Output};

use insta::assert_snapshot;

use crate::world::World;

const HANDLERS: &str = "
from agentflow import Context, handler

@handler('billing.Pay')
def pay(payload: dict, ctx: Context) -> dict:
    ctx.log('charging', payload['amount'])
    ctx.progress(0.5)
    return {'id': 'txn-1', 'facet': payload['_facet_name'], 'region': payload['_handler_metadata'].get('region')}

@handler('billing.Refund')
async def refund(payload):
    return {'refunded': payload['amount']}

@handler('billing.Broken')
def broken(payload):
    return {'when': object}
";

fn python(world: &World, arguments: &[&str]) -> Output {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let mut command = Command::new("python3");
    command
        .args(arguments)
        .current_dir(world.path(""))
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last = stderr.lines().last().unwrap_or_default();
    format!("{:?}\n{stdout}{last}", output.status.code())
}

#[test]
fn handlers_are_tried_from_the_command_line() {
    let world = World::new();
    world.write("handlers.py", HANDLERS);
    let try_ =
        |arguments: &[&str]| told(&python(&world, &[&["-m", "agentflow", "test"], arguments].concat()));
    let pay = [
        "handlers",
        "--facet",
        "billing.Pay",
        "--input",
        r#"{"amount": 5}"#,
        "--metadata",
        r#"{"region": "eu"}"#,
    ];
    assert_snapshot!(try_(&pay));
    assert_snapshot!(try_(&["handlers.py", "--facet", "billing.Refund", "--input", r#"{"amount": 5}"#]));
    assert_snapshot!(try_(&["handlers", "--facet", "billing.Broken"]));
    assert_snapshot!(try_(&["handlers", "--facet", "billing.Nothing"]));
    assert_snapshot!(try_(&["handlers", "--input", "{"]));
}

#[test]
fn handlers_are_tried_in_unit_tests() {
    let world = World::new();
    world.write("handlers.py", HANDLERS);
    let test = "
import handlers
from agentflow import InvalidResult, run_handler
run = run_handler(handlers, {'amount': 5}, facet='billing.Pay')
assert run.result['id'] == 'txn-1', run.result
assert run.logs == [{'level': 'info', 'text': 'charging 5'}], run.logs
assert run.progress == [{'fraction': 0.5, 'message': ''}], run.progress
assert run_handler(handlers.refund, {'amount': 5}).result == {'refunded': 5}
try:
    run_handler(handlers.broken)
except InvalidResult as error:
    print(error)
";
    assert_snapshot!(told(&python(&world, &["-c", test])));
}

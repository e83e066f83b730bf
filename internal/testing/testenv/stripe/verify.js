// Verifies webhook deliveries with the npm package stripe, whose signature header has the layout of ours: proof that ours can be
// verified by code that somebody else wrote. Reads a JSON array of {body, header, secret, at} from standard input, at in Unix
// milliseconds, and prints a JSON array with the type of each event, or null where the delivery was refused.
const stripe = require('stripe')('a key that is never used');

const deliveries = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const verdicts = deliveries.map(({body, header, secret, at}) => {
  try {
    return stripe.webhooks.constructEvent(body, header, secret, undefined, undefined, at).type;
  } catch (refusal) {
    if (refusal.type !== 'StripeSignatureVerificationError') throw refusal;
    return null;
  }
});
console.log(JSON.stringify(verdicts));

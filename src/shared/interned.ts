// One object for each key, the same one for everybody who asks while somebody holds it: what is equal can be told by identity.

/** @returns what `make` made for this key, now or for somebody who still holds it */
export function createInterned<Value extends object>(): (key: string, make: () => Value) => Value {
  const values = new Map<string, WeakRef<Value>>();
  const collected = new FinalizationRegistry<string>((key) => {
    // It may have been made anew meanwhile.
    if (values.get(key)?.deref() === undefined) values.delete(key);
  });
  return (key, make) => {
    let value = values.get(key)?.deref();
    if (value === undefined) {
      value = make();
      values.set(key, new WeakRef(value));
      collected.register(value, key);
    }
    return value;
  };
}

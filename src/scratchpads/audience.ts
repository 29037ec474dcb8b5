// All subscribers of one pad. Those that stand at the same place and only wait for what comes next sit in a row: they are told together.
import type { Preparation, Seat } from '../shared/divertible.js';
import { isSamePosition, lastNumber, startOfHistory, type EventPosition } from './event-cursor.js';
import type { PublishedEvent } from './schemas.js';
import type { Delivery, ScratchpadChange } from './scratchpad-change.js';

/** A subscriber that may sit in the row. */
export interface Member<Subscriber> {
  readonly subscriber: Subscriber;
  readonly prepare: Preparation<ScratchpadChange, object>;
  readonly seat: Seat<object>;
  /** Where it sits; the audience's alone. */
  place: number | undefined;
  /** It does not sit any more, and has been told everything up to this place. */
  stand(position: EventPosition): void;
  /** What its seat did not take: it counts as handed over. */
  hand(delivery: Delivery): void;
  /** Its seat threw. */
  fail(error: unknown): void;
}

export interface Audience<Subscriber> {
  add(subscriber: Subscriber): void;
  /** Of one that does not sit. */
  remove(subscriber: Subscriber): void;
  /** Lets a member of the audience sit, if those who do stand at the same place: it is told events without being offered them. */
  sit(member: Member<Subscriber>, position: EventPosition): void;
  /** Takes a member out of the row, if it sits there. */
  stand(member: Member<Subscriber>): void;
  /** Tells an event to everybody. */
  offer(event: PublishedEvent): void;
  /** Takes everybody out of the row, and then visits all. */
  each(visit: (subscriber: Subscriber) => void): void;
}

/** @param toDelivery the event as a change for those who stand at `position` */
export function createAudience<Subscriber extends { offer(event: PublishedEvent): void }>(
  toDelivery: (event: PublishedEvent, position: EventPosition) => Delivery,
): Audience<Subscriber> {
  /** Everybody who does not sit. */
  const apart = new Set<Subscriber>();
  /** There are empty places only while the row is told something. */
  let row: (Member<Subscriber> | undefined)[] = [];
  /** Where those stand who sit in the row; while it is told an event, those from `telling.place` on, also who sits down meanwhile. */
  let position = startOfHistory;
  /** Those before `place` have been told, and stand at `position`. */
  let telling: { place: number; hasEmptyPlaces: boolean; readonly position: EventPosition } | undefined;

  const clear = (place: number): void => {
    if (telling) {
      row[place] = undefined;
      telling.hasEmptyPlaces = true;
      return;
    }
    const last = row.pop();
    if (!last || place === row.length) return;
    row[place] = last;
    last.place = place;
  };
  const closeRanks = (): void => {
    row = row.filter((member) => member !== undefined);
    for (const [place, member] of row.entries()) member!.place = place;
  };

  const stand = (member: Member<Subscriber>): void => {
    const { place } = member;
    if (place === undefined) return;
    clear(place);
    member.place = undefined;
    apart.add(member.subscriber);
    member.stand(telling && place < telling.place ? telling.position : position);
  };
  const standAll = (): void => {
    for (const member of row.filter((one) => one !== undefined)) stand(member);
  };

  const tell = (member: Member<Subscriber>, told: object | undefined, delivery: Delivery): void => {
    try {
      if (told !== undefined && member.seat.take(told)) return;
    } catch (error) {
      member.fail(error);
    }
    stand(member);
    member.hand(delivery);
  };

  const tellRow = (event: PublishedEvent): void => {
    const delivery = toDelivery(event, position);
    let prepare: Member<Subscriber>['prepare'] | undefined;
    let told: object | undefined;
    telling = { place: 0, hasEmptyPlaces: false, position: delivery.position };
    while (telling.place < row.length) {
      const member = row[telling.place];
      telling.place += 1;
      if (!member) continue;
      if (member.prepare !== prepare) {
        prepare = member.prepare;
        told = prepare(delivery.change);
      }
      tell(member, told, delivery);
    }
    position = telling.position;
    if (telling.hasEmptyPlaces) closeRanks();
    telling = undefined;
  };

  return {
    add: (subscriber) => void apart.add(subscriber),
    remove: (subscriber) => void apart.delete(subscriber),
    sit(member, at) {
      if (member.place !== undefined) return;
      if (row.length === 0) position = at;
      else if (!isSamePosition(position, at)) return;
      apart.delete(member.subscriber);
      member.place = row.push(member) - 1;
    },
    stand,
    offer(event) {
      if (event.operation !== 'DELETE' && event.previous === lastNumber(position)) tellRow(event);
      // A gap, the end, or what was told already: each finds out what that means for it.
      else standAll();
      for (const subscriber of apart) subscriber.offer(event);
    },
    each(visit) {
      standAll();
      for (const subscriber of apart) visit(subscriber);
    },
  };
}

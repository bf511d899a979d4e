"""Texts that tell a secret, and texts that only look as if they did, with | between them.

The rules were tuned on all but the reported ones.
"""

TUNED_SECRETS = """
PIN 4711 | 4711 is my PIN. | My PIN number is 4711. | the door code is 88-12 | password hunter2xyz
Login with bob / s3cret | my wifi password: blue-horse-tea | The passcode of my phone is 250817.
The key to the safe is 19-33-07. | My IBAN is GB29 NWBK 6016 1331 9268 19.
Use my Visa 4000 0566 5566 5556, expiry 09/29. | cvv 123 | My password is correcthorse.
The alarm code at the cottage is 7788. | user: anna pass: T!ger99 | the combination of my bike lock is 4-8-1-5
sort code 20-00-00, account number 55779911 | my ssn is 219-09-9999
Here's the recovery phrase: witch collapse practice feed shame open despair creek road again ice least
The gate opens with 4821#. | My online banking PIN changed to 9031. | wlan key: Kx7-ppq-22
my new password for Netflix is PopcornTime! | The username is mara and the password is sunflower7.
I set the password to Elephant_Blue. | Enter 5590 at the keypad of the garage. | My Apple ID password's Wren2020.
card number 378282246310005 | 2FA code: 118 245 | The voicemail PIN: 0000 | Pin code for the debit card: 8241
9917 is the code for the front door. | My bank PIN's 3306. | the code to the building is 4590
Password = rainyday44 | log in as kim with password lemon-tart
The Wi-Fi password at my mum's place is Gartenzwerg12. | Passcode 771902 | the safe combination is 12-45-33
IBAN: FR14 2004 1010 0505 0001 3M02 606 | My MasterCard is 5555-5555-5555-4444. | CVC is 876
My laptop password: oatmeal | The alarm is disarmed with 6120. | Login: paul, password: Vogel!88
my padlock code is 733 | Account no. 31926819, sort code 60-16-13 | SSN 078-05-1120
My seed phrase is army van defense carry jealous true garbage claim echo media make crunch
Type 0451 at the keypad to get in. | My PIN is now 2580. | Network key: zebra-9-lilac
I changed my password to MoonRiver77. | The password's "open sesame". | the entry code of the gym is C4471
Our guest wifi: name Lotus, password teatime | My credit card number is 6011 1111 1111 1117.
Your verification code is 402913. | the code for the key box is 5 2 0 9 | My passport number is 533401372.
my pin's 4711 btw | the pin for my visa is 1945 | Remember: PIN for the bank card = 6612 | my ATM pin is 3344
you can get in with 2468 | the code's 4711 | code for the office door: 7391 | Our door code is now 6655
the wifi is Lotus2020, password is hunter22 | pw: qwertz | WiFi password - sunnyday9 | password: hunter2
my gmail password is bananabread | please remember that my password is tiger | my pass is kitty2009
root password is toor | the combo for locker 12 is 18-4-33 | The safe opens with 7-14-21.
My debit card is 4539 1488 0343 6467 and it expires in May | my card no 4539148803436467
Here is my account: DE89370400440532013000 | my iban de89 3704 0044 0532 0130 00 | my social is 078-05-1120
security code on the back is 321 | My login for the portal: anna / Winter!2024
The login is anna and the password Winter2024 | the unlock pattern code of my tablet is 1470
To open the garage, press 1379. | Key code 4432 opens the shed. | My phone unlocks with 190387.
the SIM PIN is 0000 | My PUK is 12345678 | WPA2 key is 8f3kd92ls0 | api key: 9f8a7b6c5d4e3f2a1b0c
my backup codes are 1234-5678 and 8765-4321 | My driver's license number is D1234567 | my passport no. is X1234567
tax id: 12 345 678 901 | Just so you know, PIN's 1956. | the pin code of my card: 60 12
My credit card PIN was changed to 4175. | 2203 is our alarm code | The code to our flat is 30 14.
use 8855 to open the gate | code at the front gate: 1212# | Lockbox combination 4-4-1-9
The shed's padlock opens with 905. | the wi-fi here is "Casa Verde", password olivenbaum3
Wifi: Lotus / pw: n0tyours | password for the printer = Drucker99 | My Spotify password is still tangerine.
the admin password was set to Quokka!5 | Her e-mail password is mangomango. | log in with mia.k / Blume-2020
Username karl, password h4mmer | My passphrase: four blue owls sing | I use hunter2 as my password.
The password I use everywhere is Sommer2019. | Visa 4929 1234 5678 9015 | Amex: 3714 496353 98431
My IBAN: NL91 ABNA 0417 1643 00 | bank details: sort code 40-47-84, account 70872490 | the CVV on the back is 907
My social security number is 536-90-4399. | Passport no. X4RTBPFW4 | My one-time code is 771 203.
unlock code for the tablet: 2580
Recovery phrase: lemon river stone cloud paper night garden silver mountain happy tiger window
my debit pin, in case I forget: 5093 | the lock on the bikes has the code 641 | Our garage code was changed to 1177.
PIN of the SIM: 2209 | the intercom code is 73B | Door opens with code 4040. | please note 8162 as my card PIN
the safe's combination is 31-7-22 | garden gate: code 5501 | Password for the NAS: turtle_pond9
The router's password is Dachs-2018 | my old password was hellokitty | I'll use Blaubeere7 as the password.
the wifi password is still waffles | Sign in with user tomk and password r0senkohl | admin / Admin123! is the login
The password to my diary app is moonlight. | pwd of the zip: x8Kq!2
Her Netflix password is cheesecake, don't tell. | Password to the shared drive: ice-cream-van
My card: 5425 2334 3010 9903, CVC 412 | mastercard 2223003122003222 | IBAN CH93 0076 2011 6238 5295 7
account number 12345678 and sort code 01-02-03 | my NHS passport number is 925665416 | Social security: 401-22-7788
SMS code 558102 | My authenticator code right now is 664 120. | secret key: sk_live_51Hxyz9aBcDeFgHiJkLmN
wallet seed words: apple brick chair dance eagle flame grape house island jelly kite lemon
"""
REPORTED_SECRETS = """
The bank gave me a new PIN, it's 7302. | PIN for my tablet: 24680 | I always use 1515 as my PIN.
the code for our front door is 6083 | My gate code is *4422. | safe code 90210 | Alarm: disarm with 3319
The combination to my locker is 22-8-30. | you need 5467 to open the garage | voicemail PIN is 8080
WiFi password is Tannenbaum | the password for the wifi is "kein zutritt" | my password's Gr33nTea
Passwort: Sonne123 | password -> blueberry | My new Amazon password is RedPanda42! | login anna password tulip99
user: root, pw: changeme1 | my gmail login is jo@example.org / Bananas12 | The Zoom passcode is 449201.
my visa number is 4024 0071 9864 6321 | card 5105105105105100 exp 04/28 | cvc: 415 | IBAN AT61 1904 3002 3457 3201
account number 33445566, sort code 11-22-33 | SSN: 212-34-5678 | my passport number's 488193027
verification code 615 087 | API key = 7c9f2e81aa0b4d55
recovery phrase is tree moon lamp desk fork sand bird gold wolf rain pine star
"""
TUNED_TALK = """
My PIN is secret. | My PIN is too short. | I forgot my PIN again. | The code of conduct is on page 12.
The password reset works. | Order 4711 arrived. | I'm in room 4711. | The door code is not known to me.
My password is too long to remember. | My password is saved in KeePass. | The password is the same as before.
The login page is broken since 2024. | The key to the house is under the mat. | The key to happiness is tea.
The code is reviewed by two people. | The code for the parser is in parse.py. | The area code is 0201.
My postcode is M4 2QN. | The zip code is 90210. | The dress code is casual. | The error code is 404.
The exit code is 137. | The HTTP status code was 503. | The country code for Norway is 47.
The product code is AB-1200. | Use the code SPRING20 for 20 percent off. | The QR code is on the ticket.
The pin is stuck in the lock. | I pinned the note at 8:15. | Pin 13 of the Arduino is the LED.
GPIO pin 17 drives the relay. | The token limit is 4096. | A token costs 2 euros at the laundry.
My access card is blue. | My card has 12 stamps. | The combination of red and green looks nice.
A combination of 3 drugs helped. | The account number is printed on the bill. | My account has 3 users.
The password must have 12 characters. | Password: required | Your password expires in 30 days.
Please enter your password. | What is the password for the wifi? | Login with Google works.
Log in as admin to see the logs. | The safe is in the basement. | We paid 4711 euros for the alarm.
The alarm rings at 6:30. | The alarm is set to 7:15. | The gate closes at 20:00. | Gate 24 opens at 9:40.
The voicemail is full. | The recovery takes 12 weeks. | The garage has 4 spaces.
The lock on my bike broke in 2021. | My phone number is 0171 5559921. | Call 112 in an emergency.
My passport expires in 2031. | The key signature is D major. | My PIN never works. | I changed my PIN yesterday.
I need a new PIN for 2026. | The bank sent me the PIN by post. | The code review took 3 hours.
Order number 88-12 is late. | I live in apartment 4711. | The door is 88 cm wide. | My password manager is KeePass.
The password is weak. | My password is never shared with anyone. | The password field is empty.
The wifi is slow since 2023. | The passcode lock of my phone annoys me. | The key to the cellar hangs by the door.
The key to success is patience. | Our code is written in Go 1.22. | The code in line 45 is wrong.
The dialling code is 0044. | The postal code of my office is 10115. | The building code of 2018 forbids it.
The genetic code has 64 codons. | The return code was 1. | The course code is CS101. | The discount code is SUMMER.
The bar code doesn't scan. | The colour code is #ff8800. | The pin on the map marks the hotel.
The bowling lane has 10 pins. | Connect pin 4 to ground. | The refresh token is valid for 30 days.
The tokens in this game are worth 5 points. | My library card expires in May. | My card was declined 3 times.
The combination therapy lasts 6 months. | My bank account is at ING. | The account manager is called Sonja.
The password policy asks for 14 characters. | The password was leaked in 2019.
You can reset the password in the settings. | I can't remember my password. | Is the password case-sensitive?
Login is required since version 3.2. | I log in with my fingerprint. | The safe weighs 80 kilos.
The alarm went off 3 times. | The keypad has 12 keys. | The garage opens at 7:30.
Gate B12 is at the end of the hall. | We meet at the gate at 18:30. | The locker room is on floor 2.
My locker is number 48. | The recovery key is kept at the bank. | My seed potatoes are planted.
The secret of the soup is 3 hours of patience. | My secret Santa gift cost 25 euros.
The verification takes 24 hours. | The username is already taken. | My passport photo is from 2019.
My licence plate is KA-PW 1990. | I changed the password to something longer. | The PIN pad is broken.
The code on the box says 4711. | My flat is number 4711 in the building. | Our wifi network is called Lotus2020.
The opening code of the show was great. | Password managers are useful. | I opened the door with a key.
The safe word is fine with me. | The combination is available in red. | I use the login page of version 2.
Sign in at the front desk by 9:15. | My password is ready to be changed. | The password is coming by mail.
The password is on the fridge. | Her password is probably written down. | The key to room 12 is at the reception.
Open the door at 7. | The alarm was set off by smoke in 2019. | Please press 1 for support.
Press 100 grams of garlic into the pan. | The code for Paris is CDG. | My user name is anna.
I type 70 words per minute. | The lock costs 120 euros. | The door opens with a creak.
The house is 120 square metres. | The phone is 5 years old. | We opened the office in 2019.
The gym code of conduct has 12 pages. | My account has 1200 euros. | the security code was never sent
Enter the building at gate 4. | The unlock fee is 200 euros.
"""
REPORTED_TALK = """
My PIN has four digits. | I wrote my PIN on a note and lost it. | Do you know my PIN?
The PIN entry timed out after 60 seconds. | Pin this message until 2027. | A pin code is needed at the counter.
The door code changes every month. | The code for the exam is on the sheet. | We use the same code in 3 services.
Code 7 of the survey means no answer. | My code runs in 4711 milliseconds. | The code base has 120000 lines.
The code of the building was designed in 1905. | Morse code uses dots and dashes. | My tax code is 1257L.
The pass costs 49 euros a month. | I have a ski pass for 6 days. | My bus pass is valid until 2026.
The pass over the mountain is closed. | The password is too simple. | The password is being changed.
The password is asked for twice. | My password is based on a song. | The password was rejected again.
The new password is active from Monday. | Passwords are hashed with argon2id. | The password cracked in 3 hours.
I set the password to expire in 90 days. | My password is nobody's business. | Ask Tom for the password.
The Wi-Fi key is on the router. | The network is called Casa Verde. | The login takes 20 seconds.
I log in every day at 9. | Log in with your e-mail / phone. | My username is karl. | The user is 42 years old.
The safe opens at 8 in the morning. | The shop opens with a discount of 500 euros.
The door is locked after 2200 hours. | The gate opened 20 minutes late. | We use gate 1212 for deliveries.
The lock was changed in 2019. | I pressed 3 times on the bell. | Use 200 grams of sugar.
The combination of the two costs 1200 euros. | My account was opened in 2014. | The account shows 12345 followers.
My customer number is 12345. | My invoice number is 2026-1044. | The tracking number is JD014600003.
The card game has 52 cards. | My ID card expires in 2030. | My passport is blue. | The number of the house is 4411.
My bike has the frame number WTU1234. | My phone is a Pixel 8. | The recovery plan has 12 steps.
My backup runs at 2200. | The phrase of the day is carpe diem.
"""


def read_texts(texts: str) -> list[str]:
    """Return the single texts."""
    return [text.strip() for line in texts.strip().splitlines() for text in line.split(" | ")]
